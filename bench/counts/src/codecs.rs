//! What is read and written: YSON, JSON, rows of tables, messages of the node protocol, memory digests.

use crate::meter::Meter;
use prost::Message;
use std::hint::black_box;
use tables::{Checker, Columns, Printer, Writer};
use vocab::{Cpu, Guid, JobId, JobOutcome, JobStatistics, Resources, Span, Time};
use wire::proto::pb;
use wire::{FinishedJob, JobEvent, NodeMessage, ServerMessage};
use yson::json::{from_json, to_json};
use yson::{Format, JsonFormat, Style, Value, map, write};

/// A specification with 200 tasks: nested maps, environment, file paths with attributes.
fn spec() -> Value {
    let path = |i: i64| Value::from(format!("//home/files/{i}")).with_attributes(map! {"executable" => true});
    let task = |i: i64| {
        map! {
            "command" => format!("./run --shard {i} --verbose > \"$OUT/log.{i}\" 2>&1"),
            "job_count" => i,
            "memory_limit" => i * 1_048_576,
            "cpu_limit" => 1.5,
            "environment" => map! {"SHARD" => i.to_string(), "PATH" => "/usr/local/bin:/usr/bin:/bin"},
            "file_paths" => Value::List((0..5).map(path).collect()),
        }
    };
    let tasks = (0..200).map(|i| (format!("task_{i}"), Value::Map(task(i)))).collect::<yson::Map>();
    Value::Map(map! {"pool" => "research", "title" => "bench", "tasks" => tasks})
}

const STYLES: [Style; 3] = [Style::Text, Style::Pretty, Style::Binary];

pub fn yson_read(meter: &mut Meter) {
    for style in STYLES {
        let mut input = Vec::new();
        write::write(&spec(), style, &mut input);
        for _ in 0..3 {
            meter.measure(|| black_box(yson::parse(black_box(&input)).expect("YSON")));
        }
    }
}

pub fn yson_write(meter: &mut Meter) {
    let value = spec();
    for style in STYLES {
        let mut out = Vec::with_capacity(1 << 20);
        for _ in 0..3 {
            out.clear();
            meter.measure(|| write::write(black_box(&value), style, &mut out));
        }
    }
}

pub fn json(meter: &mut Meter) {
    let (value, format) = (spec(), JsonFormat::default());
    for _ in 0..3 {
        let text = meter.measure(|| to_json(black_box(&value), &format));
        meter.measure(|| black_box(from_json(black_box(&text), &format).expect("JSON")));
    }
}

const FORMATS: [&str; 4] = ["<format=binary>yson", "<format=text>yson", "json", "dsv"];

fn format(name: &str) -> Format {
    Format::parse(name.as_bytes()).expect("a format")
}

/// 500 rows of about a hundred bytes.
fn rows(format: &Format) -> Vec<u8> {
    let mut text = Vec::new();
    for n in 0..500_i64 {
        let name = "x".repeat(60 + n as usize % 20);
        let row = map! {"id" => n, "name" => name, "half" => n as f64 / 2.0};
        format.write_rows([&row.into()], &mut text).expect("printable");
    }
    text
}

pub fn rows_in(meter: &mut Meter) {
    for name in FORMATS {
        let format = format(name);
        let input = rows(&format);
        meter.measure(|| {
            let mut writer = Writer::new(format.clone(), Checker::new(None, Vec::new()));
            let mut out = Vec::new();
            for piece in black_box(input.as_slice()).chunks(16 << 10) {
                writer.push(piece, &mut out).expect("rows");
            }
            writer.finish(&mut out).expect("rows");
            out.len()
        });
    }
}

pub fn rows_out(meter: &mut Meter) {
    let rows = rows(&format(FORMATS[0]));
    for name in FORMATS {
        let format = format(name);
        meter.measure(|| {
            let mut printer = Printer::new(format.clone(), Columns::default());
            let mut out = Vec::new();
            printer.print(black_box(&rows), &mut out).expect("printable");
            out.len()
        });
    }
}

/// Orders to start jobs and reports of their ends, there and back.
pub fn wire(meter: &mut Meter) {
    let starts = ServerMessage::Start((0..50).map(crate::node::start).collect());
    let ends = NodeMessage::Jobs((0..50).map(|n| JobEvent::Finished(Box::new(finished(n)))).collect());
    for _ in 0..5 {
        meter.measure(|| {
            let bytes = pb::ServerMessage::from(black_box(&starts)).encode_to_vec();
            let read = pb::ServerMessage::decode(bytes.as_slice()).expect("a message");
            black_box(ServerMessage::try_from(read).expect("a message"));
        });
        meter.measure(|| {
            let bytes = pb::NodeMessage::from(black_box(&ends)).encode_to_vec();
            let read = pb::NodeMessage::decode(bytes.as_slice()).expect("a message");
            black_box(NodeMessage::try_from(read).expect("a message"));
        });
    }
}

fn finished(n: u32) -> FinishedJob {
    FinishedJob {
        identity: crate::node::start(n).identity,
        granted: Resources { user_slots: 1, cpu: Cpu(100), memory: 1 << 30, ..Resources::ZERO },
        outcome: JobOutcome::Completed { interrupted: None, restart_needed: false },
        start_time: Some(Time::from_secs(1_000_000)),
        finish_time: Time::from_secs(1_000_060),
        statistics: JobStatistics { exec: Span::from_secs(60), ..JobStatistics::default() },
        stderr_size: 20,
        stderr: Some(format!("job {}\n", JobId(Guid([n, 0, 0, 0x384]))).into_bytes()),
        fail_context_size: 0,
        slot_index: Some(n),
    }
}

/// A task learns from 1,000 jobs and is asked for the reserve of the next one after each of them.
pub fn digest(meter: &mut Meter) {
    use reserve::memory_digest::{
        Bases, ClusterOptions, JobProxyOptions, Peaks, Reserves, ScriptOptions, Settings,
    };
    let proxy = JobProxyOptions::default();
    let bases = Bases { footprint: 1 << 27, io_estimate: 0, memory_limit: 1 << 29, tmpfs_size: 0 };
    let (cluster, script) = (ClusterOptions::default(), ScriptOptions::default());
    let settings = Settings::new(bases, &cluster, &script, &proxy, (&proxy, None));
    let mut task = Reserves::new(settings);
    let mut random = crate::random::Random(3);
    meter.measure(|| {
        for cookie in 0..1_000 {
            let x = random.unit();
            let peaks = Peaks { user_job: Some((x * 5e8) as i64), job_proxy: Some((x * 2e8) as i64) };
            task.completed(peaks);
            black_box(task.request(task.factors(cookie)));
        }
    });
}
