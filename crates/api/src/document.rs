//! The OpenAPI document of the routes.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::routes::{Access, Parameter, ParameterKind, ROUTES, Route};
use crate::{Method, RefusedRequest, RequestFailure};

/// Returns the schema of a request or answer body.
pub(crate) type BodySchema = fn(&mut SchemaGenerator) -> Schema;

pub(crate) const fn body<T: JsonSchema>() -> BodySchema {
    |schemas| schemas.subschema_for::<T>()
}

/// All routes whose requests and answers are described here, as an OpenAPI 3.1 document.
pub fn document() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = "/components/schemas".into();
    let mut schemas = SchemaGenerator::new(settings);
    let mut paths: Map<String, Value> = Map::new();
    for route in ROUTES.iter().filter(|route| route.answer.is_some() && route.method != Method::Any) {
        let entry = paths.entry(route.path).or_insert_with(|| json!({}));
        entry[route.method.as_str().to_ascii_lowercase()] = operation(route, &mut schemas);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Sinew",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The administration interface of a Sinew gateway.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas.take_definitions(true),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    })
}

fn operation(route: &Route, schemas: &mut SchemaGenerator) -> Value {
    let mut operation = json!({
        "operationId": id(route),
        "summary": route.about,
        "x-sinew-access": route.access.as_str(),
        "security": match route.access {
            Access::Open => json!([]),
            Access::Client | Access::Admin => json!([{"token": []}]),
        },
        "responses": {"default": failures(schemas)},
    });
    if let Some(answer) = route.answer {
        operation["responses"]["200"] = content("The answer.", answer(schemas));
    }
    if let Some(request) = route.request {
        let schema = request(schemas);
        operation["requestBody"] = json!({"required": true, "content": {"application/json": {"schema": schema}}});
    }
    let parameters: Vec<Value> = placeholders(route.path).chain(route.parameters.iter().map(in_query)).collect();
    if !parameters.is_empty() {
        operation["parameters"] = Value::Array(parameters);
    }
    operation
}

/// The answers that any failed request may get.
fn failures(schemas: &mut SchemaGenerator) -> Value {
    let problem = schemas.subschema_for::<RefusedRequest>();
    let failure = schemas.subschema_for::<RequestFailure>();
    let ready = schemas.subschema_for::<crate::Readiness>();
    content("The request was refused or failed.", json!({"anyOf": [problem, failure, ready]}))
}

fn content(description: &str, schema: impl serde::Serialize) -> Value {
    json!({"description": description, "content": {"application/json": {"schema": schema}}})
}

/// `revoke_token` for `Operation::RevokeToken`.
fn id(route: &Route) -> String {
    let mut id = String::new();
    for character in format!("{:?}", route.operation).chars() {
        if character.is_ascii_uppercase() && !id.is_empty() {
            id.push('_');
        }
        id.push(character.to_ascii_lowercase());
    }
    id
}

fn placeholders(path: &str) -> impl Iterator<Item = Value> + '_ {
    let names = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    names.map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}))
}

fn in_query(parameter: &Parameter) -> Value {
    let schema = match parameter.kind {
        ParameterKind::Text => json!({"type": "string"}),
        ParameterKind::Texts => json!({"type": "array", "items": {"type": "string"}}),
        ParameterKind::Number => json!({"type": "integer", "minimum": 0}),
        ParameterKind::OneOf(words) => json!({"type": "string", "enum": words}),
    };
    json!({"name": parameter.name, "in": "query", "description": parameter.about, "schema": schema})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reference_in_the_document_resolves() {
        let document = document();
        let text = document.to_string();
        for part in text.split("\"$ref\":\"#").skip(1) {
            let place = part.split('"').next().expect("a text");
            assert!(document.pointer(place).is_some(), "{place}");
        }
        assert!(text.contains("#/components/schemas/DeviceSummary"));
        assert_eq!(document["paths"]["/api/v1/tokens/{id}"]["delete"]["parameters"][0]["name"], "id");
        assert_eq!(document["paths"]["/api/v1/devices"]["get"]["x-sinew-access"], "client");
    }
}
