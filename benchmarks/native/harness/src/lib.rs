//! What both programs share: the input files, the clocks, the digest of what a view shows, and the answer in JSON.
//!
//! A program is called as `differential orders FOLDER 10x1000 1000x200`: the workload, the folder with its files (see
//! `native_data.py`), and how many ticks of which size. It answers with one line of JSON, like Everview's own drivers.

use std::env;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::PathBuf;
use std::time::{Duration, Instant};

const WORD: usize = 8;
const OFFSET: u64 = 0xCBF2_9CE4_8422_2325;
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

/// A row of the view, and how often it has come or gone.
pub type Change<const COLUMNS: usize> = ([i64; COLUMNS], i64);

/// What the command line says.
pub struct Given {
    pub workload: String,
    folder: PathBuf,
    plan: Vec<(usize, usize)>,
}

impl Given {
    pub fn from_arguments() -> Given {
        let mut arguments = env::args().skip(1);
        let workload = arguments.next().expect("the name of a workload");
        let folder = PathBuf::from(arguments.next().expect("the folder of its files"));
        let plan = arguments.map(|ticks| plan_of(&ticks)).collect();
        Given { workload, folder, plan }
    }

    /// All rows of a relation.
    pub fn rows<const COLUMNS: usize>(&self, relation: &str) -> Vec<[i64; COLUMNS]> {
        let mut file = self.open(relation);
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).expect("a file of rows");
        bytes.chunks_exact(COLUMNS * WORD).map(row_of).collect()
    }

    fn open(&self, name: &str) -> BufReader<File> {
        let path = self.folder.join(format!("{name}.i64"));
        BufReader::new(File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
    }
}

fn plan_of(ticks: &str) -> (usize, usize) {
    let (size, count) = ticks.split_once('x').expect("ticks as SIZExCOUNT");
    (size.parse().expect("a size"), count.parse().expect("a count"))
}

fn row_of<const COLUMNS: usize>(bytes: &[u8]) -> [i64; COLUMNS] {
    std::array::from_fn(|column| {
        let start = column * WORD;
        i64::from_le_bytes(bytes[start..start + WORD].try_into().expect("eight bytes"))
    })
}

/// Load a view, run the ticks, and print what that took and where it led.
///
/// `apply` is handed nothing for the load, whose rows it has, and then the changes of every tick, rows of `WIDTH`
/// columns of which the last is the weight. It returns the change of the view. The files of ticks are read as they are
/// needed, and neither that nor the digest is timed.
pub fn measure<const WIDTH: usize, const COLUMNS: usize>(
    given: &Given,
    mut apply: impl FnMut(Option<&[[i64; WIDTH]]>) -> Vec<Change<COLUMNS>>,
) {
    let mut trail = Trail::default();
    let load = timed(&mut trail, || apply(None));
    let mut ticks = Vec::new();
    for &(size, count) in &given.plan {
        let mut file = given.open(&format!("ticks-{size}"));
        let mut bytes = vec![0; size * WIDTH * WORD];
        let mut taken = Vec::new();
        for _ in 0..count {
            file.read_exact(&mut bytes).expect("another tick");
            let changes: Vec<[i64; WIDTH]> = bytes.chunks_exact(WIDTH * WORD).map(row_of).collect();
            taken.push(timed(&mut trail, || apply(Some(&changes))));
        }
        ticks.push(format!("\"{size}\": {}", summary(&taken)));
    }
    let answer = [
        format!("\"load\": {{\"seconds\": {:.9}, \"cpu\": {:.9}}}", load.0.as_secs_f64(), load.1.as_secs_f64()),
        format!("\"ticks\": {{{}}}", ticks.join(", ")),
        format!("\"digest\": {}, \"rows\": {}, \"peak\": {}", trail.digest, trail.rows, peak()),
    ];
    println!("{{{}}}", answer.join(", "));
}

/// The contents of a view after the load and after every tick, all in one number.
#[derive(Default)]
struct Trail {
    contents: u64,
    digest: u64,
    rows: i64,
}

impl Trail {
    fn add<const COLUMNS: usize>(&mut self, changes: &[Change<COLUMNS>]) {
        for (row, weight) in changes {
            self.contents = self.contents.wrapping_add(mixed(row).wrapping_mul(*weight as u64));
            self.rows += weight;
        }
        self.digest = self.digest.wrapping_mul(FACTOR).wrapping_add(self.contents);
    }
}

fn mixed(row: &[i64]) -> u64 {
    row.iter().fold(OFFSET, |before, &word| {
        let mixed = before.wrapping_add(word as u64).wrapping_mul(FACTOR);
        mixed ^ mixed >> 29
    })
}

/// Time by the clock, and the CPU time of all threads.
fn timed<const COLUMNS: usize>(
    trail: &mut Trail,
    apply: impl FnOnce() -> Vec<Change<COLUMNS>>,
) -> (Duration, Duration) {
    let (worked, began) = (cpu(), Instant::now());
    let changes = apply();
    let taken = (began.elapsed(), cpu() - worked);
    trail.add(&changes);
    taken
}

fn cpu() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    assert_eq!(failed, 0, "the clock of the process");
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn summary(taken: &[(Duration, Duration)]) -> String {
    let seconds = taken.iter().map(|each| each.0.as_secs_f64()).collect();
    let cpu: Vec<f64> = taken.iter().map(|each| each.1.as_secs_f64()).collect();
    let mean = cpu.iter().sum::<f64>() / cpu.len() as f64;
    format!("{{\"median\": {:.9}, \"cpu\": {:.9}, \"mean_cpu\": {mean:.9}}}", median(seconds), median(cpu))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 }
}

/// The most bytes that were resident at once.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a process on Linux");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("its peak");
    let kibibytes: u64 = line.split_whitespace().nth(1).expect("a number").parse().expect("a number");
    kibibytes * 1024
}
