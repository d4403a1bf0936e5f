//! The four workloads on dbsp, the engine of Feldera, in one worker; it merges in threads of its own besides.

use dbsp::mimalloc::MiMalloc;
use dbsp::typed_batch::{IndexedZSetReader, SpineSnapshot};
use dbsp::utils::{Tup2, Tup3};
use dbsp::{
    DBData, DBSPHandle, NestedCircuit, OrdIndexedZSet, OrdZSet, OutputHandle, RootCircuit, Runtime, Stream, ZSetHandle,
};
use harness::{Change, Given, measure};

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

const WORKERS: usize = 1;

type Edge = Tup2<i64, i64>;

fn main() {
    let given = Given::from_arguments();
    match given.workload.as_str() {
        "orders" => orders(&given),
        "reachability" => reachability(&given),
        "closure" => closure(&given),
        "triangles" => triangles(&given),
        other => panic!("no workload is called {other}"),
    }
}

/// Orders joined with customers; the sum and the count of their amounts by nation.
fn orders(given: &Given) {
    let (mut circuit, (customers, orders, totals)) = Runtime::init_circuit(WORKERS, |root| {
        let (customers, customer_input) = root.add_input_zset::<Tup2<i64, i64>>();
        let (orders, order_input) = root.add_input_zset::<Tup3<i64, i64, i64>>();
        let nations = customers.map_index(|Tup2(id, nation)| (*id, *nation));
        let amounts = orders.map_index(|Tup3(_, customer, amount)| (*customer, *amount));
        let totals = amounts
            .join_index(&nations, |_, amount, nation| Some((*nation, *amount)))
            .aggregate_linear(|amount| Tup2(*amount, 1i64));
        Ok((customer_input, order_input, totals.accumulate_output()))
    })
    .expect("a circuit");
    let mut first = Some((given.rows::<2>("customers"), given.rows::<3>("orders")));
    measure(given, |changes: Option<&[[i64; 4]]>| {
        if let Some((customer_rows, order_rows)) = first.take() {
            customers.append(&mut customer_rows.into_iter().map(|[id, nation]| Tup2(Tup2(id, nation), 1)).collect());
            orders.append(&mut order_rows.into_iter().map(|[id, of, amount]| Tup2(Tup3(id, of, amount), 1)).collect());
        }
        if let Some(changes) = changes {
            orders.append(
                &mut changes.iter().map(|&[id, of, amount, weight]| Tup2(Tup3(id, of, amount), weight)).collect(),
            );
        }
        circuit.transaction().expect("a transaction");
        pairs_of(&totals, |nation, Tup2(total, count)| [nation, total, count])
    });
}

/// The nodes that can be reached from the roots; what `recursive` returns is made distinct in every round.
fn reachability(given: &Given) {
    let (mut circuit, (roots, edges, reached)) = Runtime::init_circuit(WORKERS, |root| {
        let (roots, root_input) = root.add_input_zset::<i64>();
        let (edges, edge_input) = root.add_input_zset::<Edge>();
        let onward = by_first(&edges);
        let reached = root.recursive(|child, reached: Stream<NestedCircuit, OrdZSet<i64>>| {
            let next = reached.map_index(|node| (*node, ())).join(&onward.delta0(child), |_, (), next| *next);
            Ok(roots.delta0(child).plus(&next))
        })?;
        Ok((root_input, edge_input, reached.accumulate_output()))
    })
    .expect("a circuit");
    let mut first = Some((given.rows::<1>("roots"), given.rows::<2>("edges")));
    measure(given, |changes: Option<&[[i64; 3]]>| {
        if let Some((root_rows, edge_rows)) = first.take() {
            roots.append(&mut root_rows.into_iter().map(|[node]| Tup2(node, 1)).collect());
            insert(&edges, edge_rows);
        }
        update(&edges, changes);
        circuit.transaction().expect("a transaction");
        rows_of(&reached, |node| [node])
    });
}

/// All pairs of nodes between which there is a path.
fn closure(given: &Given) {
    let (circuit, (edges, paths)) = Runtime::init_circuit(WORKERS, |root| {
        let (edges, edge_input) = root.add_input_zset::<Edge>();
        let onward = by_first(&edges);
        let paths = root.recursive(|child, paths: Stream<NestedCircuit, OrdZSet<Edge>>| {
            let longer = paths.map_index(|Tup2(a, b)| (*b, *a)).join(&onward.delta0(child), |_, a, c| Tup2(*a, *c));
            Ok(edges.delta0(child).plus(&longer))
        })?;
        Ok((edge_input, paths.accumulate_output()))
    })
    .expect("a circuit");
    drive_edges(given, circuit, &edges, || rows_of(&paths, |Tup2(a, b)| [a, b]));
}

/// How many triangles there are, each from its lowest node to its highest.
///
/// Paths of two edges are joined with the edges that close them: of the three joins to begin with, `ab` with `bc` has
/// the fewest rows in graphs like these.
fn triangles(given: &Given) {
    let (circuit, (edges, counted)) = Runtime::init_circuit(WORKERS, |root| {
        let (edges, edge_input) = root.add_input_zset::<Edge>();
        let ends =
            edges.map_index(|Tup2(a, b)| (*b, *a)).join_index(&by_first(&edges), |_, a, c| Some((Tup2(*a, *c), ())));
        let closing = edges.map_index(|edge| (*edge, ()));
        let counted = ends.join_index(&closing, |_, (), ()| Some(((), ()))).weighted_count();
        Ok((edge_input, counted.accumulate_output()))
    })
    .expect("a circuit");
    drive_edges(given, circuit, &edges, || pairs_of(&counted, |(), count| [count]));
}

fn by_first(edges: &Stream<RootCircuit, OrdZSet<Edge>>) -> Stream<RootCircuit, OrdIndexedZSet<i64, i64>> {
    edges.map_index(|Tup2(a, b)| (*a, *b))
}

fn drive_edges<const COLUMNS: usize>(
    given: &Given,
    mut circuit: DBSPHandle,
    edges: &ZSetHandle<Edge>,
    changed: impl Fn() -> Vec<Change<COLUMNS>>,
) {
    let mut first = Some(given.rows::<2>("edges"));
    measure(given, |changes: Option<&[[i64; 3]]>| {
        first.take().into_iter().for_each(|rows| insert(edges, rows));
        update(edges, changes);
        circuit.transaction().expect("a transaction");
        changed()
    });
}

fn insert(edges: &ZSetHandle<Edge>, rows: Vec<[i64; 2]>) {
    edges.append(&mut rows.into_iter().map(|[a, b]| Tup2(Tup2(a, b), 1)).collect());
}

fn update(edges: &ZSetHandle<Edge>, changes: Option<&[[i64; 3]]>) {
    edges.append(&mut changes.unwrap_or_default().iter().map(|&[a, b, weight]| Tup2(Tup2(a, b), weight)).collect());
}

/// The change of a view of rows, each once.
fn rows_of<K: DBData, const COLUMNS: usize>(
    view: &OutputHandle<SpineSnapshot<OrdZSet<K>>>,
    row: impl Fn(K) -> [i64; COLUMNS],
) -> Vec<Change<COLUMNS>> {
    view.concat().consolidate().iter().map(|(key, (), weight)| (row(key), weight)).collect()
}

/// The change of a view of keys and values, each pair once.
fn pairs_of<K: DBData, V: DBData, const COLUMNS: usize>(
    view: &OutputHandle<SpineSnapshot<OrdIndexedZSet<K, V>>>,
    row: impl Fn(K, V) -> [i64; COLUMNS],
) -> Vec<Change<COLUMNS>> {
    view.concat().consolidate().iter().map(|(key, value, weight)| (row(key, value), weight)).collect()
}
