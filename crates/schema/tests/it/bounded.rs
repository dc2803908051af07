//! Work is counted, whatever the schema and the value.

use serde_json::{Map, Value, json};
use sinew_schema::{Cost, Invalid, Meter, Rejection, Validator};

use crate::{ROOM, compile};

/// The units that one check takes, and whether they sufficed.
fn spend(schema: &Value, value: &Value, limit: u64) -> (u64, bool) {
    let mut meter = Meter::new(limit);
    let is_exhausted = matches!(compile(schema).unwrap().check(value, &mut meter), Err(Rejection::Exhausted));
    assert!(meter.spent() <= limit);
    (meter.spent(), is_exhausted)
}

fn nested(depth: usize) -> Value {
    (0..depth).fold(json!([]), |inner, _| json!([inner]))
}

#[test]
fn branches_that_double_with_each_level_of_the_value_use_up_the_meter_and_no_more() {
    let bombs = ["anyOf", "oneOf", "allOf"].map(|word| {
        let branch = json!({"items": {"$ref": "#/$defs/s"}, "maxItems": 0});
        json!({"$ref": "#/$defs/s", "$defs": {"s": {"type": "array", word: [
            {"items": {"$ref": "#/$defs/s"}}, {"items": {"$ref": "#/$defs/s"}}, branch,
        ]}}})
    });
    for bomb in bombs {
        let last = json!([nested(60), 1]);
        let (spent, is_exhausted) = spend(&bomb, &last, 100_000);
        assert!(spent <= 100_000);
        if is_exhausted {
            assert_eq!(spent, 100_000);
        }
    }
    let seed = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/s"}}, "$defs": {"s": {"type": "array",
        "anyOf": [{"items": {"$ref": "#/$defs/s"}}, {"items": {"$ref": "#/$defs/s"}}]}}});
    let value = (0..24).fold(json!(1), |inner, _| json!([inner]));
    assert_eq!(spend(&seed, &json!({"a": value}), 200_000), (200_000, true));
}

#[test]
fn references_that_multiply_each_other_use_up_the_meter() {
    let mut defs = Map::new();
    for level in 0..30 {
        let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
        defs.insert(format!("d{level}"), json!({"oneOf": [next, next]}));
    }
    defs.insert("d30".to_owned(), json!({"type": "string"}));
    assert_eq!(spend(&json!({"$ref": "#/$defs/d0", "$defs": defs}), &json!(1), 50_000), (50_000, true));
}

#[test]
fn a_long_way_through_references_ends_before_the_stack_does() {
    let defs: Map<String, Value> =
        (0..5_000).map(|n| (format!("d{n}"), json!({"$ref": format!("#/$defs/d{}", n + 1)}))).collect();
    let mut schema = json!({"$ref": "#/$defs/d0", "$defs": defs});
    schema["$defs"]["d5000"] = json!(true);
    assert!(spend(&schema, &json!(1), 1_000_000).1);
}

#[test]
fn everything_that_grows_with_the_value_is_counted() {
    let many = |count: usize| Value::Array((0..count).map(|n| json!(format!("text {n}"))).collect());
    let long = "a".repeat(100_000);
    let members: Map<String, Value> = (0..20_000).map(|n| (format!("m{n}"), json!(n))).collect();
    let choices = many(2_000);
    let cases = [
        (json!({"uniqueItems": true}), many(50_000)),
        (json!({"items": {"enum": [[1], [2], [3], [4], [5], [6], [7]]}}), Value::Array(vec![json!([7]); 5_000])),
        (json!({"contains": {"const": choices}}), Value::Array(vec![choices.clone(); 30])),
        (json!({"maxLength": 5}), json!("a".repeat(1_000_000))),
        (json!({"pattern": "^(a+)+(?=b)$"}), json!(long)),
        (json!({"patternProperties": {"(m|1)+9": {}, "x$": {}}}), Value::Object(members.clone())),
        (json!({"propertyNames": {"pattern": "m(0|1|)+"}}), Value::Object(members.clone())),
        (json!({"unevaluatedProperties": {"type": "integer"}}), Value::Object(members)),
    ];
    for (schema, value) in cases {
        assert_eq!(spend(&schema, &value, 10_000), (10_000, true), "{schema}");
    }
}

#[test]
fn an_honest_schema_takes_a_few_units_for_each_part_of_a_value() {
    let item = json!({
        "type": "object",
        "properties": {"id": {"type": "integer", "minimum": 0}, "name": {"type": "string", "maxLength": 40}},
        "required": ["id"],
        "additionalProperties": false,
    });
    let value: Vec<Value> = (0..1_000).map(|n| json!({"id": n, "name": "kitchen"})).collect();
    let (spent, is_exhausted) = spend(&json!({"type": "array", "items": item}), &Value::Array(value), 100_000);
    assert!(!is_exhausted && spent < 20_000, "{spent}");
}

#[test]
fn a_compiled_schema_stays_within_the_room_it_was_given() {
    let room = |change: fn(&mut Cost)| {
        let mut room = ROOM;
        change(&mut room);
        room
    };
    let patterns: Map<String, Value> =
        (0..6_000).map(|n| (format!("p{n}"), json!({"pattern": format!(r"\p{{L}}{{20}}{n}")}))).collect();
    let flood = json!({ "properties": patterns });
    assert_eq!(Validator::compile(&flood, ROOM).unwrap_err(), Invalid::TooCostly("Unicode properties in patterns"));
    let one = json!({"pattern": "^a{10}$"});
    for (small, what) in [
        (room(|room| room.schemas = 0), "subschemas"),
        (room(|room| room.patterns = 0), "patterns"),
        (room(|room| room.pattern_bytes = 6), "bytes of patterns"),
        (room(|room| room.pattern_states = 9), "states of patterns"),
    ] {
        assert_eq!(Validator::compile(&one, small).unwrap_err(), Invalid::TooCostly(what));
    }
    let cost = compile(&one).unwrap().cost();
    assert!(Validator::compile(&one, cost).is_ok());
    assert_eq!((cost.schemas, cost.patterns, cost.pattern_bytes), (1, 1, 7));
}
