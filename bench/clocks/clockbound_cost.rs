// SPDX-License-Identifier: Apache-2.0
//! What a reading of ClockBound's client costs: `clockbound-cost SEGMENT BLOCKS`.
//!
//! Its segment of shared memory is written here, in the layout of its version 3 (`ClockErrorBoundV3` of the crate), as its daemon
//! does where it keeps a clock, and does not change meanwhile. The last line is JSON: ns a reading of each block.

use clock_bound::client::{ClockBoundClient, ClockStatus};
use std::arch::x86_64::_rdtsc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const BLOCK_READS: u32 = 4000;
const WARM_UP: u32 = 100_000;
const BOUND_NS: i64 = 1_000_000;
const MEASURE: Duration = Duration::from_millis(200);

fn counter() -> u64 {
    unsafe { _rdtsc() }
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("a time after 1970")
}

fn seconds_per_tick() -> f64 {
    let (begin, begin_ticks) = (Instant::now(), counter());
    std::thread::sleep(MEASURE);
    begin.elapsed().as_secs_f64() / (counter() - begin_ticks) as f64
}

/// A fraction as the segment has it: frac / 2^(64 + shift), with as many digits as fit.
fn scaled(value: f64) -> (u64, u8) {
    let mut shift = 0;
    while value * 2f64.powi(64 + i32::from(shift) + 1) < 2f64.powi(64) {
        shift += 1;
    }
    ((value * 2f64.powi(64 + i32::from(shift))) as u64, shift)
}

fn segment(period_s: f64) -> Vec<u8> {
    let (period, period_shift) = scaled(period_s);
    let (error, error_shift) = scaled(1e-6);
    let (time, ticks) = (now(), counter());
    let mut bytes = Vec::new();
    let mut put = |field: &[u8]| bytes.extend_from_slice(field);

    for magic in [0x414D_5A4E_u32, 0x4342_0200] {
        put(&magic.to_ne_bytes());
    }
    put(&(16 + 88_u32).to_ne_bytes()); // its size
    put(&0x0303_u16.to_ne_bytes()); // versions: least, this
    put(&2_u16.to_ne_bytes()); // generation: even, complete
    put(&ticks.to_ne_bytes());
    for later_s in [0, 3600] {
        // as of; void after
        put(&(time.as_secs() as i64 + later_s).to_ne_bytes());
        put(&i64::from(time.subsec_nanos()).to_ne_bytes());
    }
    put(&period.to_ne_bytes());
    put(&error.to_ne_bytes());
    put(&BOUND_NS.to_ne_bytes());
    put(&0_u64.to_ne_bytes()); // disruption marker
    put(&15_000_u32.to_ne_bytes()); // drift, ppb
    put(&(ClockStatus::Synchronized as i32).to_ne_bytes());
    put(&[0, period_shift, error_shift]); // no VMClock
    put(&[0; 5]);
    bytes
}

/// The segment is what the client takes it for: the system's clock is inside the interval that it gives.
fn check(client: &mut ClockBoundClient) {
    let before = now().as_nanos() as i64;
    let window = client.now().expect("a reading");
    let after = now().as_nanos() as i64;
    let ns = |time: nix::sys::time::TimeSpec| i64::from(time.tv_sec()) * 1_000_000_000 + i64::from(time.tv_nsec());

    assert_eq!(window.clock_status, ClockStatus::Synchronized);
    assert!(ns(window.earliest) <= after && before <= ns(window.latest));
    assert!(ns(window.latest) - ns(window.earliest) < 3 * BOUND_NS);
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let blocks: u32 = arguments[2].parse().expect("BLOCKS");

    std::fs::write(&arguments[1], segment(seconds_per_tick())).expect("SEGMENT");
    let mut client = ClockBoundClient::new_with_path(&arguments[1]).expect("a segment");
    check(&mut client);
    for _ in 0..WARM_UP {
        std::hint::black_box(client.now().expect("a reading"));
    }
    let costs: Vec<String> = (0..blocks)
        .map(|_| {
            let begin = Instant::now();
            for _ in 0..BLOCK_READS {
                std::hint::black_box(client.now().expect("a reading"));
            }
            format!("{:.3}", begin.elapsed().as_nanos() as f64 / f64::from(BLOCK_READS))
        })
        .collect();
    check(&mut client);
    println!("{{\"clockbound_ns\":[{}]}}", costs.join(","));
}
