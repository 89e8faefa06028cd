//! The message exchange of a `printf`, with a client on the host.
#![cfg(feature = "std")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use gpurpc::client::{Call, Client, HostLocks, Locks};
use gpurpc::libc::printf;
use gpurpc::memory::Region;
use gpurpc::opcode::{PRINTF_TO_STDOUT, PRINTF_TO_STDOUT_PACKED};
use gpurpc::server::{Device, Fault, Handlers, Limits};
use gpurpc::{Error, Layout, PortIndex};

/// Polls the server whenever the client waits.
struct Polling {
    locks: HostLocks,
    device: Arc<Mutex<Device>>,
    faults: Faults,
}

impl Locks for Polling {
    fn try_lock(&self, port: PortIndex) -> bool {
        self.locks.try_lock(port)
    }

    fn unlock(&self, port: PortIndex) {
        self.locks.unlock(port);
    }

    fn relax(&self) {
        self.device.lock().unwrap().poll();
        // No answer could follow.
        assert_eq!(*self.faults.lock().unwrap(), []);
    }
}

const STRINGS_LIMIT: usize = 4000;
const TEXT_LIMIT: usize = 5000;

type Ends = (Client<Region, Polling>, Arc<Mutex<Device>>);
type Texts = Arc<Mutex<BTreeMap<u32, Vec<u8>>>>;
type Faults = Arc<Mutex<Vec<Fault>>>;

/// Reports of a server: dropped calls, and refused ones.
#[derive(Clone, Default)]
struct Reports {
    faults: Faults,
    refusals: Faults,
}

/// Client of a server that stores the printed text in `texts`.
fn client(lanes: u32, limits: Limits, texts: &Texts, reports: &Reports) -> Result<Ends, Error> {
    let mut handlers = Handlers::new();
    for (opcode, packed) in [(PRINTF_TO_STDOUT, false), (PRINTF_TO_STDOUT_PACKED, true)] {
        let texts = Arc::clone(texts);
        handlers.on_session(opcode, move |mut port| {
            let texts = Arc::clone(&texts);
            async move {
                let received = printf::receive(&mut port, packed, STRINGS_LIMIT).await?;
                let printed = received.texts(TEXT_LIMIT)?;
                for (_, reason) in printed.refused() {
                    port.refuse(reason);
                }
                let text = |lane| Some((lane, printed.get(lane)?.to_vec()));
                let printed: BTreeMap<_, _> = port.lanes().filter_map(text).collect();
                let size = |lane| printed.get(&lane).map_or(-1, |text| text.len() as i32);
                printf::finish(&mut port, size).await;
                *texts.lock().unwrap() = printed;
                Ok(port)
            }
        })?;
    }
    let found = Arc::clone(&reports.faults);
    handlers.on_fault(move |dropped| found.lock().unwrap().push(dropped.fault.clone()));
    let refused = Arc::clone(&reports.refusals);
    handlers.on_refusal(move |call| refused.lock().unwrap().push(call.reason.clone()));
    let region = Region::zeroed(Layout::new(2, lanes)?)?;
    let memory = region.clone();
    let device = Device::new(region, Arc::new(handlers), limits);
    let device = Arc::new(Mutex::new(device));
    let locks = Polling {
        locks: HostLocks::new(),
        device: Arc::clone(&device),
        faults: Arc::clone(&reports.faults),
    };
    Ok((Client::new(memory, locks), device))
}

/// A `printf` of one lane, and its expected output.
struct Print {
    format: &'static str,
    arguments: Vec<u8>,
    text: &'static str,
}

/// The memory of the device.
const STRINGS: [&str; 3] = [
    "first\0",
    "\0",
    "a string that takes more than one packet, which has 56 bytes\0",
];

fn print(lane: u32, packed: bool) -> Print {
    let (format, values, text): (_, &[(usize, u64)], _) = match lane % 5 {
        0 => ("%d %s\n\0", &[(4, 7), (8, 100)], "7 first\n"),
        1 => ("no strings\0", &[], "no strings"),
        2 => (
            "%s|%s|%s|%s\0",
            &[(8, 100), (8, 0), (8, 102), (8, 101)],
            "first|(null)|a string that takes more than one packet, which has 56 bytes|",
        ),
        3 => (
            "%hhd %lx\0",
            &[(4, 0x1ff), (8, 0x1234_5678_9abc)],
            "-1 123456789abc",
        ),
        _ => (
            "a longer format of two packets, so that lanes differ in what they send: %.2s%5d\0",
            &[(8, 102), (4, 42)],
            "a longer format of two packets, so that lanes differ in what they send: a    42",
        ),
    };
    let mut arguments = Vec::new();
    for (size, value) in values {
        while !packed && arguments.len() % size != 0 {
            arguments.push(0);
        }
        match size {
            4 => arguments.extend_from_slice(&(*value as u32).to_ne_bytes()),
            _ => arguments.extend_from_slice(&value.to_ne_bytes()),
        }
    }
    Print {
        format,
        arguments,
        text,
    }
}

/// Makes the call, and returns each lane's result.
fn talk(call: &mut Call<'_, Region, Polling>, prints: &[Print]) -> BTreeMap<u32, u64> {
    let of = |lane: u32| &prints[lane as usize];
    call.send_n(|lane| of(lane).format.as_bytes());
    call.recv(|packets| {
        for lane in packets.lanes() {
            assert_eq!(
                packets.word(lane, 0),
                of(lane).arguments.len() as u64,
                "{lane}"
            );
        }
    });
    call.send_n(|lane| &of(lane).arguments);
    loop {
        let words = call.recv(|packets| {
            let word = |lane| (lane, (packets.word(lane, 0), packets.word(lane, 1)));
            packets.lanes().map(word).collect::<BTreeMap<_, _>>()
        });
        let words = words.unwrap();
        if words.values().all(|(_, address)| *address == 0) {
            return words
                .into_iter()
                .map(|(lane, (result, _))| (lane, result))
                .collect();
        }
        call.send_n(|lane| match words.get(&lane) {
            Some((_, address @ 100..=102)) => STRINGS[*address as usize - 100].as_bytes(),
            Some((_, 0)) | None => b"",
            other => panic!("{other:?}"),
        });
    }
}

#[test]
fn each_lane_prints_its_own() -> Result<(), Error> {
    let (texts, reports) = (Texts::default(), Reports::default());
    for (lanes, masks) in [
        (1, &[1][..]),
        (32, &[0xffff_ffff, 1, 1 << 31, 0b1_0110, 0b1000, 0b10]),
        (64, &[u64::MAX, 0xf0f0 << 48]),
    ] {
        let (client, _) = client(lanes, Limits::default(), &texts, &reports)?;
        for (opcode, packed) in [(PRINTF_TO_STDOUT, false), (PRINTF_TO_STDOUT_PACKED, true)] {
            let prints: Vec<_> = (0..64).map(|lane| print(lane, packed)).collect();
            for mask in masks {
                let mut call = client.open(opcode, *mask);
                let taking_part: Vec<u32> = call.lanes().collect();
                let results = talk(&mut call, &prints);
                drop(call);
                let printed = texts.lock().unwrap();
                assert_eq!(printed.keys().copied().collect::<Vec<_>>(), taking_part);
                for (lane, text) in &*printed {
                    let expected = prints[*lane as usize].text;
                    assert_eq!(String::from_utf8_lossy(text), expected);
                    assert_eq!(results[lane], expected.len() as u64);
                }
            }
        }
    }
    assert_eq!(*reports.faults.lock().unwrap(), []);
    assert_eq!(*reports.refusals.lock().unwrap(), []);
    Ok(())
}

/// Fault and refusal of a call of one lane that sends the same string so many times. The result of a refused call
/// is -1.
fn reports_of(
    limits: Limits,
    format: &str,
    arguments: &[u8],
    string: &[u8],
    strings: usize,
) -> Result<[Option<Fault>; 2], Error> {
    let (texts, reports) = (Texts::default(), Reports::default());
    let (client, device) = client(1, limits, &texts, &reports)?;
    let mut call = client.open(PRINTF_TO_STDOUT, 1);
    let served = || {
        let mut device = device.lock().unwrap();
        while device.poll() {}
        reports.faults.lock().unwrap().is_empty()
    };
    call.send_n(|_| format.as_bytes());
    if served() {
        let size = call.recv(|packets| packets.word(0, 0)).unwrap_or(0) as usize;
        call.send_n(|_| &arguments[..size.min(arguments.len())]);
    }
    let mut left = strings;
    while served() {
        let words = call.recv(|packets| [packets.word(0, 0), packets.word(0, 1)]);
        let Some([result, address]) = words else {
            break;
        };
        if address == 0 {
            let is_refused = !reports.refusals.lock().unwrap().is_empty();
            assert_eq!(result == u64::MAX, is_refused);
            break;
        }
        left = left.checked_sub(1).expect("no more strings are requested");
        call.send_n(|_| string);
    }
    drop(call);
    let one = |of: &Faults| {
        let mut found = of.lock().unwrap().clone();
        assert!(found.len() <= 1, "{found:?}");
        found.pop()
    };
    Ok([one(&reports.faults), one(&reports.refusals)])
}

#[test]
fn too_few_arguments_drop_the_call() -> Result<(), Error> {
    let reports = reports_of(Limits::default(), "%d%s", &[0; 12], &[], 0)?;
    let fault = Fault::Other("printf: missing arguments");
    assert_eq!(reports, [Some(fault), None]);
    Ok(())
}

#[test]
fn refused_requests_are_answered() -> Result<(), Error> {
    let wide = [i32::MAX.to_ne_bytes(), [0; 4]].concat();
    let long = [b'x'; STRINGS_LIMIT + 1];
    for (format, arguments, string, reason) in [
        ("%n", &[][..], &[][..], "printf: %n is not allowed"),
        ("%s%s", &[1; 16], &long, "printf: strings exceed the limit"),
        ("%*d", &wide, &[], "printf: output exceeds the limit"),
    ] {
        let reports = reports_of(Limits::default(), format, arguments, string, 1)?;
        assert_eq!(reports, [None, Some(Fault::Other(reason))], "{format}");
    }
    Ok(())
}

/// Received strings and the printed text count as messages.
#[test]
fn kept_texts_count() -> Result<(), Error> {
    let reports = |memory, format: &str, string: &[u8], strings| {
        let limits = Limits {
            memory,
            ..Limits::default()
        };
        let arguments = [1_u64.to_ne_bytes(); 3].concat();
        reports_of(limits, format, &arguments, string, strings)
    };
    let is_refused = |reports: &[_; 2]| matches!(reports, [None, Some(Fault::OutOfMemory { .. })]);
    // Two strings fit, three do not, even without the text.
    let string = [b'x'; 1000];
    let format = "%.0s%.0s%.0s";
    assert!(is_refused(&reports(3000, format, &string, 3)?));
    assert_eq!(reports(8000, format, &string, 3)?, [None, None]);
    assert!(is_refused(&reports(3000, "%4000d", b"", 0)?));
    assert_eq!(reports(8000, "%4000d", b"", 0)?, [None, None]);
    // Addresses of strings, requested by arguments that fit.
    assert!(is_refused(&reports(12 + 24 + 23, format, b"", 3)?));
    assert_eq!(reports(12 + 24 + 24 + 4, format, b"", 3)?, [None, None]);
    Ok(())
}
