use super::*;

#[test]
fn what_a_reader_takes_is_described_with_its_bounds() {
    let described = Fields::describe(|fields| {
        fields.text("a", 1, 5);
        fields.text_or("b", "x", 0, 3);
        fields.optional_text("c", 7);
        fields.number_or("d", 2, 1, 9);
        fields.optional_flag_or("e", true);
        fields.choice_or("h", &["x", "y", "z"], "y");
        fields.list("f", 1, 6, |fields| fields.text("g", 2, 4));
    });
    assert_eq!(described.required, ["a", "f"]);
    let item =
        json!({"properties": {"g": {"type": "string", "minLength": 2, "maxLength": 4}}, "required": ["g"]});
    let expected = json!({
        "a": {"type": "string", "minLength": 1, "maxLength": 5},
        "b": {"type": "string", "minLength": 0, "maxLength": 3, "default": "x"},
        "c": {"type": ["string", "null"], "minLength": 0, "maxLength": 7},
        "d": {"type": "integer", "minimum": 1, "maximum": 9, "default": 2},
        "e": {"type": ["boolean", "null"], "default": true},
        "f": {"type": "array", "minItems": 1, "maxItems": 6, "items": item},
        "h": {"type": "string", "enum": ["x", "y", "z"], "default": "y"},
    });
    assert_eq!(Value::Object(described.properties), expected);
}
