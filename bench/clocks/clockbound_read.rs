// SPDX-License-Identifier: Apache-2.0
//! Read ClockBound for `timeservice-truth-reader -`: `clockbound-read SEGMENT READS SECONDS`.
//!
//! Blocks of 4000 readings, spread over so many seconds. Of each reading, four numbers of 64 bits, as they lie in memory: the counter
//! before and after it, the earliest and the latest time in ns since 1970; both 0: it gave no time, or is not synchronised.

use clock_bound::client::{ClockBoundClient, ClockStatus};
use std::arch::x86_64::_rdtsc;
use std::io::Write;
use std::time::{Duration, Instant};

const BLOCK_READS: u32 = 4000;

fn counter() -> u64 {
    unsafe { _rdtsc() }
}

fn interval_ns(client: &mut ClockBoundClient) -> (i64, i64) {
    let ns = |time: nix::sys::time::TimeSpec| i64::from(time.tv_sec()) * 1_000_000_000 + i64::from(time.tv_nsec());
    match client.now() {
        Ok(window) if window.clock_status == ClockStatus::Synchronized => (ns(window.earliest), ns(window.latest)),
        _ => (0, 0),
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let blocks = arguments[2].parse::<u32>().expect("READS") / BLOCK_READS;
    let seconds: u32 = arguments[3].parse().expect("SECONDS");
    let mut client = ClockBoundClient::new_with_path(&arguments[1]).expect("a segment");
    let mut out = std::io::stdout().lock();
    let begin = Instant::now();

    for block in 0..blocks {
        let due = Duration::from_secs(u64::from(seconds)) * block / blocks;
        std::thread::sleep(due.saturating_sub(begin.elapsed()));
        let mut bytes = Vec::with_capacity(BLOCK_READS as usize * 32);
        for _ in 0..BLOCK_READS {
            let before = counter();
            let (earliest, latest) = interval_ns(&mut client);
            let after = counter();
            for number in [before, after, earliest as u64, latest as u64] {
                bytes.extend_from_slice(&number.to_ne_bytes());
            }
        }
        out.write_all(&bytes).expect("who judges");
    }
}
