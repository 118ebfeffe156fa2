//! Quantities as typed and as printed.

use cli::units::*;
use proptest::prelude::*;
use vocab::{Cpu, Resources, Span, Time};

#[test]
fn sizes() {
    for (text, expected) in [
        ("0", Some(0)),
        ("1000", Some(1000)),
        ("1K", Some(1024)),
        ("1GiB", Some(1 << 30)),
        ("512MiB", Some(512 << 20)),
        ("16G", Some(16 << 30)),
        ("16g", Some(16 << 30)),
        ("1.5 GiB", Some(3 << 29)),
        ("2TiB", Some(2 << 40)),
        ("1MB", Some(1_000_000)),
        ("100B", Some(100)),
        ("-1", None),
        ("", None),
        ("GiB", None),
        ("1 X", None),
        ("1.2.3", None),
        ("100000T", None),
    ] {
        assert_eq!(parse_size(text).ok(), expected, "{text:?}");
    }
}

#[test]
fn cores_and_times() {
    for (text, expected) in [
        ("2", Some(200)),
        ("0.25", Some(25)),
        ("0", Some(0)),
        ("0.001", None),
        ("-1", None),
        ("nan", None),
        ("x", None),
    ] {
        assert_eq!(parse_cores(text).ok(), expected.map(Cpu), "{text:?}");
    }
    for (text, expected) in [
        ("500ms", Some(500)),
        ("30s", Some(30_000)),
        ("2h", Some(7_200_000)),
        ("30", None),
        ("0s", None),
        ("s", None),
        ("", None),
    ] {
        assert_eq!(parse_span(text).ok(), expected.map(Span::from_millis), "{text:?}");
    }
}

#[test]
fn resource_lists() {
    let amounts = parse_resources("cpu=1.5, memory=2GiB,user_slots=7").expect("good");
    assert_eq!(amounts.to_string(), "cpu=1.5,memory=2147483648,user_slots=7");
    let all = amounts.over(Resources { gpu: 4, user_slots: 1, ..Resources::ZERO });
    assert_eq!((all.cpu, all.gpu, all.user_slots, all.memory), (Cpu(150), 4, 7, 2 << 30));
    let text = yson::to_text(&amounts.to_map().into());
    assert_eq!(String::from_utf8_lossy(&text), r#"{"cpu"=1.5;"memory"=2147483648;"user_slots"=7;}"#);
    for bad in ["", "cpu", "cpu=", "cpu=1;memory=1", "user_slots=1.5", "disk=5"] {
        assert!(parse_resources(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn addresses() {
    for (text, expected) in [
        ("127.0.0.1:8000", Some("127.0.0.1:8000")),
        (":9000", Some("127.0.0.1:9000")),
        ("localhost:1", Some("127.0.0.1:1")),
        ("[::1]:80", Some("[::1]:80")),
        ("8000", None),
        ("a.example:1", None),
        (":99999", None),
    ] {
        assert_eq!(parse_listen(text).ok().map(|a| a.to_string()).as_deref(), expected, "{text:?}");
    }
    for (text, expected) in [
        ("http://a.example:1/", Some("a.example:1")),
        (":8000", Some("127.0.0.1:8000")),
        ("a.example", None),
        ("a/b:1", None),
    ] {
        assert_eq!(parse_server(text).ok().as_deref(), expected, "{text:?}");
    }
}

#[test]
fn variables_and_files() {
    assert_eq!(parse_env("A=b=c"), Ok(("A".to_owned(), "b=c".to_owned())));
    for bad in ["=x", "1A=x", "A-B=x", "MILLPOND_SURELY_NOT_SET"] {
        assert!(parse_env(bad).is_err(), "{bad}");
    }
    let name = |text: &str| parse_file(text).map(|f| (f.path.display().to_string(), f.name));
    assert_eq!(name("/a/b.py"), Ok(("/a/b.py".into(), "b.py".into())));
    assert_eq!(name("/a/b.py:lib/c.py"), Ok(("/a/b.py".into(), "lib/c.py".into())));
    for bad in ["/a:../x", "/a:/x", "/a:b//c", "/"] {
        assert!(parse_file(bad).is_err(), "{bad}");
    }
}

#[test]
fn printed_bytes() {
    for (bytes_count, expected) in [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        (3 << 29, "1.5 GiB"),
        (16 << 30, "16 GiB"),
        (16_777_216_000, "15.6 GiB"),
        (150 << 20, "150 MiB"),
        ((1 << 30) - 1, "1 GiB"),
        (-2048, "-2 KiB"),
    ] {
        assert_eq!(bytes(bytes_count), expected, "{bytes_count}");
    }
}

#[test]
fn printed_numbers() {
    assert_eq!(
        [0, 950, 1234, 12_345, 1_234_567, -12_345].map(count).join("|"),
        "0|950|1234|12 345|1 234 567|-12 345"
    );
    assert_eq!([0.0, 0.125, 1.0, 1e9, f64::NAN].map(percent).join("|"), "0%|12.5%|100%|-|-");
    assert_eq!(
        [0.0, 0.001, 0.5, 0.999, 1.0, 7.0].map(|r| bar(r, 4)).join("|"),
        "····|█···|██··|███·|████|████"
    );
    let spans = [0, 12, 185, 7_380, 349_200].map(|s| span(Span::from_secs(s)));
    assert_eq!(spans.join("|"), "0ms|12s|3m 05s|2h 03m|4d 01h");
    assert_eq!(age(Time::from_secs(10), Time::from_secs(22)), "12s ago");
    assert_eq!(age(Time::from_secs(10), Time::from_secs(5)), "now", "clocks differ");
    let some = Resources { cpu: Cpu(150), memory: 1 << 30, user_slots: 2, ..Resources::ZERO };
    assert_eq!(resources(&some), "cpu 1.5, memory 1 GiB, slots 2");
    assert_eq!(resources(&Resources::ZERO), "-");
}

#[test]
fn the_largest_unit_is_read_back() {
    assert_eq!(parse_size(&bytes(1_125_350_151_028_736)), Ok(1 << 50));
}

proptest! {
    #[test]
    fn printed_sizes_are_read_back_nearly(size in 0i64..1 << 50) {
        let back = parse_size(&bytes(size)).expect("our own form");
        prop_assert!((back - size).abs() as f64 <= size as f64 * 0.06 + 0.5, "{size} {back}");
    }

    #[test]
    fn printed_amounts_are_read_back(cpu in 0i64..1_000_000, memory in 0i64..1 << 50, slots in 0i64..1 << 31) {
        let amounts = parse_resources(&format!("cpu={},memory={memory},user_slots={slots}", Cpu(cpu))).expect("good");
        prop_assert_eq!(parse_resources(&amounts.to_string()), Ok(amounts.clone()));
        prop_assert_eq!(amounts.over(Resources::ZERO).cpu, Cpu(cpu));
    }

    #[test]
    fn parsers_never_panic(text in ".{0,20}") {
        let _ = (parse_size(&text), parse_cores(&text), parse_span(&text), parse_resources(&text));
        let _ = (parse_listen(&text), parse_server(&text), parse_env(&text), parse_file(&text));
        let _ = (parse_option(&text), parse_yson_map(&text));
    }
}
