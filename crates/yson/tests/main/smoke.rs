//! Seeded floods: round trips of random values, and parsers under damaged input.

use crate::support::{Kind, Rng, damage, show, string, value};
use yson::dsv::{DsvFormat, from_dsv, write_dsv_row};
use yson::json::{JsonFormat, from_json, from_json_stream, to_json};
use yson::ypath::{Root, Step, YPath};
use yson::{Format, Map, Style, Value, parse};

#[test]
fn values_survive_every_style() {
    let mut rng = Rng(1);
    for _ in 0..4_000 {
        let x = value(&mut rng, 5, Kind::ALL);
        for form in [yson::to_text(&x), yson::to_pretty(&x), yson::to_binary(&x)] {
            assert_eq!(parse(&form).as_ref(), Ok(&x), "{}", show(&form));
        }
    }
}

#[test]
fn values_survive_json() {
    let mut rng = Rng(2);
    let plain = Kind { small_uints: false, special_doubles: false, ..Kind::ALL };
    let utf8 = Kind { utf8_only: true, ..plain };
    for _ in 0..2_000 {
        let options = JsonFormat { pretty: rng.one_in(2), ..JsonFormat::default() };
        let cases = [
            (plain, options.clone()),
            (utf8, JsonFormat { encode_utf8: false, ..options.clone() }),
            // Types make every signedness and infinity come back.
            (
                Kind::ALL,
                JsonFormat { annotate_with_types: true, stringify_nan_and_infinity: true, ..options.clone() },
            ),
            (Kind::ALL, JsonFormat { annotate_with_types: true, stringify: true, ..options }),
        ];
        for (kind, format) in cases {
            let x = value(&mut rng, 4, kind);
            let json = to_json(&x, &format);
            assert_eq!(from_json(&json, &format).as_ref(), Ok(&x), "{}", show(&json));
        }
    }
}

#[test]
fn rows_survive_dsv() {
    let mut rng = Rng(3);
    for format in
        [DsvFormat::default(), DsvFormat::tskv(), DsvFormat { field_separator: b',', ..DsvFormat::default() }]
    {
        for _ in 0..1_000 {
            let rows: Vec<Value> = (0..rng.below(4))
                .map(|_| {
                    let row: Map = (0..rng.below(4))
                        .map(|_| (string(&mut rng, Kind::ALL), string(&mut rng, Kind::ALL)))
                        .map(|(k, v)| (k, Value::String(v)))
                        .collect();
                    Value::Map(row)
                })
                .collect();
            let mut text = Vec::new();
            rows.iter().for_each(|row| write_dsv_row(row, &format, &mut text).unwrap());
            let back: Result<Vec<Value>, _> = from_dsv(&text, &format).collect();
            assert_eq!(back.as_ref(), Ok(&rows), "{}", show(&text));
        }
    }
}

fn path(rng: &mut Rng) -> YPath {
    let mut path = YPath::root();
    if rng.one_in(4) {
        path.root = Root::Object("1-a2-10003e8-ffffffff".to_owned());
    }
    for _ in 0..rng.below(5) {
        let mut key = string(rng, Kind::ALL);
        key.push(b'k');
        path.steps.push(match rng.below(8) {
            0 => Step::NoFollow,
            1 => Step::ListBegin,
            2 => Step::ListEnd,
            3 => Step::ListBefore(rng.next() as i64),
            4 => Step::ListAfter(rng.below(5) as i64),
            5 => Step::Attribute(key),
            6 => Step::Child(
                rng.pick(&["begin", "end", "before:1", "after:-2", "@x", "*", "7"]).as_bytes().to_vec(),
            ),
            _ => Step::Child(key),
        });
    }
    match rng.below(8) {
        0 => path.steps.push(Step::AllAttributes),
        1 => path.steps.push(Step::AllChildren),
        2 => path.steps.push(Step::AllUserAttributes),
        _ => {}
    }
    if rng.one_in(3) {
        path.attributes =
            yson::map! {"append" => true, "columns" => vec!["a", "b"], "x" => value(rng, 2, Kind::ALL)};
    }
    path
}

#[test]
fn paths_survive_printing() {
    let mut rng = Rng(4);
    for _ in 0..5_000 {
        let p = path(&mut rng);
        let text = p.to_string();
        assert!(text.is_ascii());
        assert_eq!(YPath::parse(text.as_bytes()).as_ref(), Ok(&p), "{text}");
        assert_eq!(YPath::from_value(&p.to_value()).as_ref(), Ok(&p), "{text}");
    }
}

/// No parser may panic, whatever it is fed; and what a parser takes must come back the same after
/// writing.
#[test]
fn damaged_input_never_panics() {
    let mut rng = Rng(5);
    let utf8 = JsonFormat::utf8();
    let json = JsonFormat { support_infinity: true, ..JsonFormat::default() };
    let dsv = DsvFormat::default();
    let mut accepted = [0; 4];
    for round in 0..25_000 {
        let x = value(&mut rng, 3, Kind::ALL);
        let style = *rng.pick(&[Style::Text, Style::Pretty, Style::Binary]);
        let seed = Format::Yson(style).serialize(&x);
        let input = damage(&mut rng, &seed, b"[]{}<>;=#%\"\\ \n0129-+.eEua_tf\x01\x02\x03\x04\x05\x06\x80xn");
        let _ = yson::parse_list_fragment(&input);
        let _ = yson::parse_map_fragment(&input);
        if let Ok(y) = parse(&input) {
            accepted[0] += 1;
            // Compared as bytes, because NaN differs from itself.
            let text = yson::to_text(&y);
            assert_eq!(yson::to_text(&parse(&text).unwrap()), text, "round {round}: {}", show(&input));
        }

        let format = if rng.one_in(2) { &utf8 } else { &json };
        let seed = to_json(&x, format);
        let input = damage(&mut rng, &seed, b"{}[]:,\"\\ \n$01.-+eEutrnbd8\x80\xc3\x00");
        from_json_stream(&input, format).for_each(drop);
        if let Ok(y) = from_json(&input, format) {
            accepted[1] += 1;
            let text = to_json(&y, format);
            assert_eq!(to_json(&from_json(&text, format).unwrap(), format), text, "{}", show(&input));
        }

        let seed = path(&mut rng).to_string();
        let input = damage(&mut rng, seed.as_bytes(), b"/@&*{}[]#:,()\\x<>=;\"0a -u%");
        if let Ok(p) = YPath::parse(&input) {
            accepted[2] += 1;
            let text = p.to_string();
            let again = YPath::parse(text.as_bytes()).unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!(again.to_string(), text, "{}", show(&input));
        }

        let input = damage(&mut rng, b"a=b\tc=d\\n\\=\\\\\nx=\n\ne=f", b"\t\n=\\0nrt\0ab");
        accepted[3] += from_dsv(&input, &dsv).filter(Result::is_ok).count();
    }
    assert!(
        accepted.iter().all(|n| *n > 1_000),
        "the damage is not so bad that all is refused: {accepted:?}"
    );
}
