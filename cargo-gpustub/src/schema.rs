//! JSON schema of `GpuStub.toml`.

use gpustub_check::RULES;
use gpustub_core::fields::{FIELDS, Field, SCHEMA_VERSION, SYSTEMS, Type};
use gpustub_core::library::Library;
use gpustub_workspace::codes::SCHEMA;
use serde_json::{Map, Value, json};

/// JSON schema of `GpuStub.toml`, for editors that complete and check TOML with one.
pub fn schema() -> String {
    let mut sections: Vec<&str> = FIELDS.iter().map(|field| field.section).collect();
    sections.dedup();
    let definitions: Map<String, Value> = sections
        .iter()
        .filter(|section| !section.is_empty())
        .map(|section| ((*section).to_owned(), object(section)))
        .collect();
    let mut schema = object("");
    schema["$schema"] = "http://json-schema.org/draft-07/schema#".into();
    schema["$id"] = SCHEMA.into();
    schema["title"] = "GpuStub.toml".into();
    schema["description"] = "The GPU libraries that a package calls".into();
    schema["definitions"] = definitions.into();
    restrict(&mut schema);
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}

/// Restricts the fields whose values the table of fields does not list.
fn restrict(schema: &mut Value) {
    schema["properties"]["schema"]["const"] = SCHEMA_VERSION.into();
    let ids: Vec<&str> = RULES.iter().map(|rule| rule.code.id).collect();
    let definitions = &mut schema["definitions"];
    definitions["policy"]["properties"]["rules"]["propertyNames"] = json!({ "enum": ids });
    definitions["policy.allow"]["properties"]["rule"]["enum"] = json!(ids);
}

fn object(section: &str) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for field in FIELDS.iter().filter(|field| field.section == section) {
        properties.insert(field.name.to_owned(), property(field));
        if field.required {
            required.push(field.name);
        }
    }
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn property(field: &Field) -> Value {
    let mut property = match field.ty {
        Type::String => json!({ "type": "string" }),
        Type::OneOf(words) => json!({ "enum": words }),
        Type::Bool => json!({ "type": "boolean" }),
        Type::Integer => json!({ "type": "integer" }),
        Type::Strings => strings(),
        // draft-07 ignores keywords beside a `$ref`, so the reference is nested.
        Type::Table(section) => json!({ "allOf": [reference(section)] }),
        Type::Tables(section) => json!({ "type": "array", "items": reference(section) }),
        Type::Map(section) => {
            let mut map = json!({ "type": "object", "additionalProperties": reference(section) });
            if section == "stub" {
                // Listed by name so that editors can complete them.
                let known: Map<String, Value> = Library::builtin_ids()
                    .map(|id| (id.to_owned(), reference(section)))
                    .collect();
                map["properties"] = Value::Object(known);
            }
            map
        }
        Type::MapString => {
            json!({ "type": "object", "additionalProperties": { "type": "string" } })
        }
        Type::MapStrings => json!({ "type": "object", "additionalProperties": strings() }),
        Type::StringOrFalse => json!({ "anyOf": [{ "type": "string" }, { "const": false }] }),
        Type::MapOneOf(words) => {
            json!({ "type": "object", "additionalProperties": { "enum": words } })
        }
        Type::NamesByOs => {
            let systems: Map<String, Value> = SYSTEMS
                .iter()
                .map(|os| ((*os).to_owned(), strings()))
                .collect();
            json!({ "type": "object", "properties": systems, "additionalProperties": false })
        }
        Type::ZeroOut => {
            let argument = json!({ "anyOf": [{ "type": "integer" }, reference("stub.zero-out")] });
            let arguments = json!({ "type": "array", "items": argument });
            json!({ "type": "object", "additionalProperties": arguments })
        }
    };
    property["description"] = field.doc.into();
    property
}

fn reference(section: &str) -> Value {
    json!({ "$ref": format!("#/definitions/{section}") })
}

fn strings() -> Value {
    json!({ "type": "array", "items": { "type": "string" } })
}

#[cfg(test)]
mod tests {
    use gpustub_core::fields::LIBRARY_TYPES;

    use super::*;

    #[test]
    fn the_file_for_editors_is_current() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/gpustub.schema.json");
        let current = std::fs::read_to_string(file).unwrap();
        assert!(current == schema(), "run `cargo xtask reference`");
    }

    #[test]
    fn every_field_and_section_is_in_the_schema() {
        let schema: Value = serde_json::from_str(&schema()).unwrap();
        for field in FIELDS {
            let properties = match field.section {
                "" => &schema["properties"],
                section => &schema["definitions"][section]["properties"],
            };
            let property = &properties[field.name];
            assert_eq!(
                property["description"], field.doc,
                "{}.{}",
                field.section, field.name
            );
        }
        let library_type = &schema["definitions"]["stub"]["properties"]["type"];
        assert_eq!(library_type["enum"], json!(LIBRARY_TYPES));
    }

    /// A dangling reference would silently disable validation.
    #[test]
    fn every_reference_leads_somewhere() {
        fn collect(value: &Value, references: &mut Vec<String>) {
            match value {
                Value::Object(map) => {
                    references.extend(map.get("$ref").and_then(Value::as_str).map(str::to_owned));
                    map.values().for_each(|value| collect(value, references));
                }
                Value::Array(list) => list.iter().for_each(|value| collect(value, references)),
                _ => {}
            }
        }
        let schema: Value = serde_json::from_str(&schema()).unwrap();
        let mut references = Vec::new();
        collect(&schema, &mut references);
        assert!(references.len() > 5);
        for reference in references {
            let pointer = reference.strip_prefix('#').unwrap();
            assert!(schema.pointer(pointer).is_some(), "{reference}");
        }
    }
}
