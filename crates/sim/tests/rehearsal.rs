//! What a rehearsal promises, on sales small enough for every run of the tests.

use waitroom_sim::rehearsal::{
    Lane, Outcome, Patience, Plan, Shape, parse_csv, rehearse, report, summary,
};

fn small(shape: Shape) -> Plan {
    Plan { over_ms: 120_000, ..Plan::usual(20_000, shape, 50) }
}

fn run(plan: &Plan) -> Outcome {
    rehearse(plan, |_| {}).expect("the plan is within its bounds")
}

fn without_speed(outcome: &Outcome) -> String {
    let mut value = serde_json::to_value(outcome).expect("an outcome is plain data");
    value.as_object_mut().expect("an outcome is an object").remove("speed");
    value.to_string()
}

#[test]
fn the_same_plan_and_seed_make_the_same_sale() {
    let plan = small(Shape::Spike);
    assert_eq!(without_speed(&run(&plan)), without_speed(&run(&plan)));
    let other = Plan { seed: 2, ..plan.clone() };
    assert_ne!(without_speed(&run(&plan)), without_speed(&run(&other)));
}

#[test]
fn everybody_ends_up_somewhere() {
    for shape in [Shape::Spike, Shape::Late, Shape::Steady] {
        let counts = run(&small(shape)).counts;
        assert_eq!(counts.joined, 20_000 + counts.came_back);
        assert_eq!(counts.joined, counts.admitted + counts.left + counts.lapsed);
        assert_eq!(counts.admitted, counts.completed + counts.no_shows);
        assert_eq!((counts.waiting, counts.inside), (0, 0));
    }
}

#[test]
fn neither_the_rate_nor_the_capacity_is_ever_exceeded() {
    for capacity in [200, 100_000] {
        let plan = Plan { capacity, ..small(Shape::Spike) };
        let found = run(&plan).admissions;
        assert!(found.busiest_second <= 50, "{}", found.busiest_second);
        assert!(found.peak_active <= capacity, "{} of {capacity}", found.peak_active);
    }
}

#[test]
fn a_single_lane_is_first_come_first_served() {
    assert_eq!(run(&small(Shape::Spike)).fairness, Some(1.0));
}

#[test]
fn a_heavier_lane_waits_less_and_fairness_shows_it() {
    let lane = |name: &str, weight| Lane { name: name.into(), weight, share: 0.5 };
    let lanes = vec![lane("members", 3), lane("everyone", 1)];
    let outcome = run(&Plan { lanes, patience: Patience::Endless, ..small(Shape::Spike) });
    assert!(outcome.lanes[0].waits.p50_ms * 3 < outcome.lanes[1].waits.p50_ms * 2);
    let fairness = outcome.fairness.expect("many entered");
    assert!(fairness < 0.95, "{fairness}");
}

#[test]
fn with_endless_patience_the_line_drains_as_fast_as_the_rate_lets_it() {
    let plan = Plan { patience: Patience::Endless, ..small(Shape::Spike) };
    let outcome = run(&plan);
    assert_eq!(outcome.counts.left + outcome.counts.lapsed, 0);
    // 20,000 people at 50 a second, from the first tick on.
    assert!(outcome.drained_ms.abs_diff(400_000) <= 1_000, "{}", outcome.drained_ms);
}

#[test]
fn less_patience_means_more_who_give_up_and_shorter_waits() {
    let with = |median_ms| {
        let patience = Patience::Exponential { median_ms };
        run(&Plan { patience, come_back: 0.0, ..small(Shape::Spike) })
    };
    let (short, long) = (with(60_000), with(600_000));
    assert!(short.counts.left + short.counts.lapsed > long.counts.left + long.counts.lapsed);
    assert!(short.waits.p90_ms < long.waits.p90_ms);
}

#[test]
fn arrivals_follow_the_file() {
    let seconds = parse_csv("second,arrivals\n0,100\n2,300\n").expect("the file is well formed");
    assert_eq!(seconds, [100, 0, 300]);
    let plan = Plan { visitors: 400, over_ms: 3_000, ..small(Shape::Given(seconds)) };
    let outcome = run(&Plan { come_back: 0.0, ..plan });
    assert_eq!(outcome.counts.joined, 400);
    let joined: Vec<f64> = outcome.moments.iter().take(3).map(|m| m.joined_per_s).collect();
    assert_eq!(joined[1], 0.0);
    assert!(joined[0] < joined[2]);
}

#[test]
fn a_wrong_file_is_told_by_line() {
    for (text, says) in [
        ("0,1\n0,2", "line 2: second 0 comes again"),
        ("0;1", "line 1: \"0;1\" is not `second,arrivals`"),
        ("a,b\n0,x", "line 2: \"x\" is not a number of arrivals"),
        ("-1,5", "line 1: \"-1\" is not a whole second"),
        ("99999999,5", "line 1: second 99999999 lies beyond seven days"),
        ("", "nobody arrives"),
        ("0,18446744073709551615\n1,1", "add up to more"),
    ] {
        let problem = parse_csv(text).expect_err(text);
        assert!(problem.contains(says), "{text:?}: {problem}");
    }
}

#[test]
fn every_number_out_of_bounds_is_named_at_once() {
    let plan =
        Plan { visitors: 0, tick_ms: 1, come_back: 1.0, lanes: vec![], ..small(Shape::Spike) };
    let wrong = rehearse(&plan, |_| {}).expect_err("four numbers are wrong");
    let fields: Vec<&str> = wrong.iter().map(|w| w.field).collect();
    for field in ["visitors", "tick", "come-back", "lanes"] {
        assert!(fields.iter().any(|f| f.contains(field)), "{field} missing in {fields:?}");
    }
}

#[test]
fn not_a_number_is_out_of_bounds_too() {
    let plan = Plan { no_show: f64::NAN, ..small(Shape::Spike) };
    assert_eq!(rehearse(&plan, |_| {}).expect_err("NaN is no share")[0].field, "no-show");
}

#[test]
fn a_room_nobody_has_to_wait_in_says_so() {
    let plan = Plan { over_ms: 600_000, ..Plan::usual(1_000, Shape::Steady, 100) };
    let outcome = run(&plan);
    assert!(outcome.waits.max_ms <= 1_000);
    assert_eq!(outcome.estimates.held, None);
    assert!(summary(&outcome).contains("nobody waited long enough"));
}

#[test]
fn one_visitor_is_a_sale_too() {
    let outcome = run(&Plan::usual(1, Shape::Spike, 1));
    assert_eq!(outcome.counts.admitted, 1);
    assert_eq!(outcome.fairness, None);
    assert!(report(&outcome).contains("</html>"));
}

#[test]
fn the_report_stands_alone_and_shows_names_as_text() {
    let lanes = vec![
        Lane { name: "<script>alert(1)</script>".into(), weight: 1, share: 0.5 },
        Lane { name: "a & b".into(), weight: 2, share: 0.5 },
    ];
    let page = report(&run(&Plan { lanes, ..small(Shape::Late) }));
    assert!(!page.contains("<script"));
    assert!(page.contains("&lt;script&gt;") && page.contains("a &amp; b"));
    // Nothing is fetched: no address, no import, no source.
    for outside in ["http:", "https:", "//", "@import", "src=", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
    for needed in ["prefers-color-scheme: dark", "<svg", "<table", "role=\"img\"", "viewport"] {
        assert!(page.contains(needed), "{needed}");
    }
    assert!(!page.contains("NaN") && !page.contains("inf"));
}
