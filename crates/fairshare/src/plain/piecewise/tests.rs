use super::*;

fn build(points: &[(f64, f64)]) -> Function<f64> {
    let mut f = Function::builder(points.len());
    for &(x, y) in points {
        f.add_point(x, y);
    }
    f
}

fn as_pairs(f: &Function<f64>) -> Vec<(f64, f64)> {
    f.points().iter().map(|p| (p.x, p.y)).collect()
}

#[test]
fn points_jumps_and_plateaus_merge() {
    let check = |given: &[(f64, f64)], expected: &[(f64, f64)]| {
        assert_eq!(as_pairs(&build(given)), expected, "{given:?}");
    };
    check(&[(0.0, 0.0), (0.0, 0.0)], &[(0.0, 0.0)]);
    check(&[(0.0, 0.0), (1.0, 0.0), (2.0, 0.0)], &[(0.0, 0.0), (2.0, 0.0)]);
    check(&[(0.0, 0.0), (0.0, 1.0), (0.0, 2.0)], &[(0.0, 0.0), (0.0, 2.0)]);
    check(&[(0.0, 0.0), (1.0, 1.0), (2.0, 2.0)], &[(0.0, 0.0), (1.0, 1.0), (2.0, 2.0)]);
    check(&[(0.0, 0.0), (1.0, 0.0), (1.0, 1.0)], &[(0.0, 0.0), (1.0, 0.0), (1.0, 1.0)]);
}

#[test]
fn limits_at_jumps_and_bounds() {
    let f = build(&[(0.0, 0.0), (0.0, 1.0), (1.0, 2.0), (1.0, 3.0), (2.0, 3.0), (2.0, 4.0)]);
    let check = |x: f64, left: f64, right: f64| {
        assert_eq!(f.value(x), left, "left limit at {x}");
        assert_eq!(f.right_limit(x), right, "right limit at {x}");
        assert_eq!(Cursor::new(&f).limits(x), (left, right), "both limits at {x}");
        assert_eq!(Cursor::new(&f).value(x), left);
        assert_eq!(Cursor::new(&f).right_limit(x), right);
    };
    check(0.0, 0.0, 1.0);
    check(0.25, 1.25, 1.25);
    check(1.0, 2.0, 3.0);
    check(1.5, 3.0, 3.0);
    check(2.0, 3.0, 4.0);
    assert_eq!(f.critical_points().collect::<Vec<_>>(), [0.0, 1.0, 2.0]);
}

#[test]
fn a_function_on_one_argument_is_a_segment() {
    let f = build(&[(1.0, 5.0)]);
    assert_eq!(f.segment_count(), 1);
    assert_eq!((f.value(1.0), f.right_limit(1.0)), (5.0, 5.0));
    assert_eq!(as_pairs(&f.clone().narrow(1.0, 1.0)), [(1.0, 5.0)]);
}

#[test]
fn narrow_keeps_jumps_at_its_bounds_and_trims_remove_them() {
    let f = build(&[(0.0, 0.0), (1.0, 1.0), (1.0, 2.0), (2.0, 3.0), (2.0, 5.0), (3.0, 5.0)]);
    let narrow = f.clone().narrow(1.0, 2.0);
    assert_eq!(as_pairs(&narrow), [(1.0, 1.0), (1.0, 2.0), (2.0, 3.0), (2.0, 5.0)]);
    assert_eq!(as_pairs(&narrow.trim_left().trim()), [(1.0, 2.0), (2.0, 3.0)]);
    let jump = f.narrow(2.0, 2.0);
    assert_eq!(as_pairs(&jump), [(2.0, 3.0), (2.0, 5.0)]);
    assert_eq!(as_pairs(&jump.clone().trim_left()), [(2.0, 5.0)]);
    assert_eq!(as_pairs(&jump.trim()), [(2.0, 3.0)]);
}

#[test]
fn arguments_that_fall_together_make_one_jump() {
    let f = build(&[(0.0, 0.0), (0.25, 1.0), (0.25 + f64::EPSILON / 4.0, 2.0), (1.0, 3.0), (1.0, 4.0)]);
    assert_eq!(f.points().len(), 5);
    assert_eq!(
        as_pairs(&f.clone().shift(1.0)),
        [(1.0, 0.0), (1.25, 1.0), (1.25, 2.0), (2.0, 3.0), (2.0, 4.0)]
    );
    let jump_beside =
        build(&[(0.0, 0.0), (0.25, 1.0), (0.25 + f64::EPSILON / 4.0, 2.0), (0.25 + f64::EPSILON / 4.0, 3.0)]);
    assert_eq!(as_pairs(&jump_beside.shift(1.0)), [(1.0, 0.0), (1.25, 1.0), (1.25, 3.0)]);
}

#[test]
fn the_minimum_has_a_point_at_each_crossing() {
    let f = build(&[(0.0, 0.0), (1.0, 1.0)]);
    let g = build(&[(0.0, 0.25), (1.0, 0.25)]);
    let min = pointwise_min(&f, &g);
    assert_eq!(as_pairs(&min), [(0.0, 0.0), (0.25, 0.25), (1.0, 0.25)]);
    assert_eq!(pointwise_min(&g, &f), min);
    let step = build(&[(0.0, 0.1), (0.5, 0.1), (0.5, 0.75), (1.0, 0.75)]);
    let expected = [(0.0, 0.0), (0.1, 0.1), (0.5, 0.1), (0.5, 0.5), (0.75, 0.75), (1.0, 0.75)];
    assert_eq!(as_pairs(&pointwise_min(&f, &step)), expected);
}

#[test]
fn composition_follows_jumps_of_both() {
    let f = build(&[(0.0, 0.0), (1.0, 1.0), (1.0, 10.0), (2.0, 12.0)]);
    // Grows through the jump of f, jumps itself, stays.
    let g = build(&[(0.0, 0.5), (1.0, 1.5), (1.0, 1.75), (2.0, 1.75)]);
    let expected = [(0.0, 0.5), (0.5, 1.0), (0.5, 10.0), (1.0, 11.0), (1.0, 11.5), (2.0, 11.5)];
    assert_eq!(as_pairs(&compose(&f, &g)), expected);
    // Standing exactly at the jump gives the value on the left.
    let stands = build(&[(0.0, 0.0), (1.0, 1.0), (2.0, 1.0)]);
    assert_eq!(as_pairs(&compose(&f, &stands)), [(0.0, 0.0), (1.0, 1.0), (2.0, 1.0)]);
}

#[test]
fn compression_removes_noise_and_nothing_else() {
    let vector = |points: &[(f64, f64)]| {
        let mut f = Function::builder(points.len());
        for &(x, y) in points {
            f.add_point(x, Share([y, 2.0 * y, 0.0, 0.0, 0.0]));
        }
        f
    };
    let check = |given: &[(f64, f64)], expected: &[f64]| {
        let got: Vec<f64> = compress(&vector(given), 1e-15).points().iter().map(|p| p.x).collect();
        assert_eq!(got, expected, "{given:?}");
    };
    check(&[(0.0, 0.0), (0.3, 0.3), (0.7, 0.7 + 1e-16), (1.0, 1.0)], &[0.0, 1.0]);
    check(&[(0.0, 0.0), (0.3, 0.3), (0.7, 0.7 + 1e-13), (1.0, 1.0)], &[0.0, 0.3, 0.7, 1.0]);
    check(&[(0.0, 0.0), (0.5, 0.0), (0.5, 0.5), (1.0, 1.0)], &[0.0, 0.5, 0.5, 1.0]);
}
