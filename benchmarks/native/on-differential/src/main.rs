//! The four workloads on differential-dataflow, in one worker, which is the thread of the program.

use std::cell::RefCell;
use std::rc::Rc;

use differential_dataflow::consolidation::consolidate;
use differential_dataflow::input::{Input, InputSession};
use differential_dataflow::operators::{CountTotal, Iterate};
use differential_dataflow::{Data, VecCollection};
use differential_dogs3::altneu::AltNeu;
use differential_dogs3::{CollectionIndex, ProposeExtensionMethod};
use harness::{Change, Given, measure};
use timely::dataflow::operators::probe::Handle;
use timely::worker::Worker;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Edge = (i64, i64);

fn main() {
    let given = Given::from_arguments();
    timely::execute_directly(move |worker| match given.workload.as_str() {
        "orders" => orders(worker, &given),
        "reachability" => reachability(worker, &given),
        "closure" => closure(worker, &given),
        "triangles" => triangles(worker, &given),
        other => panic!("no workload is called {other}"),
    });
}

/// Where the changes of a view arrive while the worker runs.
struct Output<D> {
    changes: Rc<RefCell<Vec<(D, isize)>>>,
    probe: Handle<u64>,
}

impl<D: Data + Ord> Output<D> {
    fn new() -> Output<D> {
        Output { changes: Rc::default(), probe: Handle::new() }
    }

    fn watch(&self, view: VecCollection<'_, u64, D, isize>) {
        let changes = Rc::clone(&self.changes);
        view.inspect_batch(move |_, batch| {
            changes.borrow_mut().extend(batch.iter().map(|(row, _, weight)| (row.clone(), *weight)));
        })
        .probe_with(&self.probe);
    }

    /// Run until the view is up to date with all times before this one; its change, each row once.
    fn until<const COLUMNS: usize>(
        &self,
        worker: &mut Worker,
        time: u64,
        row: impl Fn(D) -> [i64; COLUMNS],
    ) -> Vec<Change<COLUMNS>> {
        worker.step_while(|| self.probe.less_than(&time));
        let mut changes = self.changes.take();
        consolidate(&mut changes);
        changes.into_iter().map(|(each, weight)| (row(each), weight as i64)).collect()
    }
}

/// Orders joined with customers; the sum and the count of their amounts by nation.
///
/// Sum and count are carried as differences, so the count by key adds them up.
fn orders(worker: &mut Worker, given: &Given) {
    let output = Output::new();
    let (mut customers, mut orders) = worker.dataflow(|scope| {
        let (customer_input, customers) = scope.new_collection::<[i64; 2], isize>();
        let (order_input, orders) = scope.new_collection::<[i64; 3], isize>();
        let nations = customers.map(|[id, nation]| (id, nation)).arrange_by_key();
        let amounts = orders.map(|[_, customer, amount]| (customer, amount)).arrange_by_key();
        let totals = amounts
            .join_core(nations, |_, amount, nation| Some((*nation, *amount)))
            .explode(|(nation, amount)| Some((nation, (amount as isize, 1))))
            .count_total();
        output.watch(totals);
        (customer_input, order_input)
    });
    let mut first = Some((given.rows::<2>("customers"), given.rows::<3>("orders")));
    measure(given, |changes: Option<&[[i64; 4]]>| {
        if let Some((customer_rows, order_rows)) = first.take() {
            customer_rows.into_iter().for_each(|row| customers.insert(row));
            order_rows.into_iter().for_each(|row| orders.insert(row));
        }
        for &[id, customer, amount, weight] in changes.unwrap_or_default() {
            orders.update([id, customer, amount], weight as isize);
        }
        advance(&mut customers);
        let time = advance(&mut orders);
        output.until(worker, time, |(nation, (total, count))| [nation, total as i64, count as i64])
    });
}

/// The nodes that can be reached from the roots.
fn reachability(worker: &mut Worker, given: &Given) {
    let output = Output::new();
    let (mut roots, mut edges) = worker.dataflow(|scope| {
        let (root_input, roots) = scope.new_collection::<i64, isize>();
        let (edge_input, edges) = scope.new_collection::<Edge, isize>();
        let edges = edges.arrange_by_key();
        let reached = Iterate::iterate(scope, |inner, reached: VecCollection<_, i64, isize>| {
            reached
                .arrange_by_self()
                .join_core(edges.enter(inner), |_, _, onward| Some(*onward))
                .concat(roots.enter(inner))
                .distinct()
        });
        output.watch(reached);
        (root_input, edge_input)
    });
    let mut first = Some((given.rows::<1>("roots"), given.rows::<2>("edges")));
    measure(given, |changes: Option<&[[i64; 3]]>| {
        if let Some((root_rows, edge_rows)) = first.take() {
            root_rows.into_iter().for_each(|[node]| roots.insert(node));
            edge_rows.into_iter().for_each(|[a, b]| edges.insert((a, b)));
        }
        update(&mut edges, changes);
        advance(&mut roots);
        let time = advance(&mut edges);
        output.until(worker, time, |node| [node])
    });
}

/// All pairs of nodes between which there is a path.
fn closure(worker: &mut Worker, given: &Given) {
    let output = Output::new();
    let mut edges = worker.dataflow(|scope| {
        let (edge_input, edges) = scope.new_collection::<Edge, isize>();
        let onward = edges.clone().arrange_by_key();
        let paths = Iterate::iterate(scope, |inner, paths: VecCollection<_, Edge, isize>| {
            paths
                .map(|(a, b)| (b, a))
                .arrange_by_key()
                .join_core(onward.enter(inner), |_, a, c| Some((*a, *c)))
                .concat(edges.enter(inner))
                .distinct()
        });
        output.watch(paths);
        edge_input
    });
    drive_edges(worker, given, &mut edges, &output, |(a, b)| [a, b]);
}

/// How many triangles there are, each from its lowest node to its highest.
///
/// One delta query an atom, with worst-case optimal joins: no path of two edges is kept. An atom's query reads the
/// atoms before it with the changes of the tick and those after it without, which is what `AltNeu` times are for.
fn triangles(worker: &mut Worker, given: &Given) {
    let output = Output::new();
    let mut edges = worker.dataflow(|scope| {
        let (edge_input, edges) = scope.new_collection::<Edge, isize>();
        let found = scope.scoped::<AltNeu<u64>, _, _>("triangles", |inner| {
            let forward = edges.enter(inner);
            let backward = forward.clone().map(|(a, b)| (b, a));
            let delayed = |time: &AltNeu<u64>| AltNeu::neu(time.time);
            let forward_new = CollectionIndex::index(forward.clone());
            let backward_new = CollectionIndex::index(backward.clone());
            let forward_old = CollectionIndex::index(forward.clone().delay(delayed));
            let backward_old = CollectionIndex::index(backward.delay(delayed));
            let by_ab = forward.clone().extend(&mut [
                &mut forward_old.extend_using(|(a, _): &Edge| *a),
                &mut forward_old.extend_using(|(_, b): &Edge| *b),
            ]);
            let by_ac = forward.clone().extend(&mut [
                &mut forward_new.extend_using(|(a, _): &Edge| *a),
                &mut backward_old.extend_using(|(_, c): &Edge| *c),
            ]);
            let by_bc = forward.extend(&mut [
                &mut backward_new.extend_using(|(b, _): &Edge| *b),
                &mut backward_new.extend_using(|(_, c): &Edge| *c),
            ]);
            by_ab.concat(by_ac).concat(by_bc).map(|_| ()).leave(scope)
        });
        output.watch(found.count_total());
        edge_input
    });
    drive_edges(worker, given, &mut edges, &output, |((), count)| [count as i64]);
}

fn drive_edges<D: Data + Ord, const COLUMNS: usize>(
    worker: &mut Worker,
    given: &Given,
    edges: &mut InputSession<u64, Edge, isize>,
    output: &Output<D>,
    row: impl Fn(D) -> [i64; COLUMNS],
) {
    let mut first = Some(given.rows::<2>("edges"));
    measure(given, |changes: Option<&[[i64; 3]]>| {
        first.take().into_iter().flatten().for_each(|[a, b]| edges.insert((a, b)));
        update(edges, changes);
        let time = advance(edges);
        output.until(worker, time, &row)
    });
}

fn update(edges: &mut InputSession<u64, Edge, isize>, changes: Option<&[[i64; 3]]>) {
    for &[a, b, weight] in changes.unwrap_or_default() {
        edges.update((a, b), weight as isize);
    }
}

/// End the tick of an input; the time of the next one.
fn advance<D: Data>(input: &mut InputSession<u64, D, isize>) -> u64 {
    let next = *input.time() + 1;
    input.advance_to(next);
    input.flush();
    next
}
