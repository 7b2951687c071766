//! From the arguments of a tool to a request of the API.

use serde_json::{Value, json};
use url::form_urlencoded::Serializer;

use super::api::{Api, ApiRequest, Verb};
use super::catalog::{CURSOR, KnownCall, KnownTool};
use super::schema::{Field, Object, Place};
use super::tool::{Paging, When};
use crate::domain::memory::entity::{EntityKey, MAX_TYPE, MAX_VALUE};
use crate::domain::nearest::nearest;

/// Why a call is refused before anything is sent, in words that say what to change.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal(pub String);

impl<T: Into<String>> From<T> for Refusal {
    fn from(text: T) -> Self {
        Self(text.into())
    }
}

/// Longest text in a query string, in characters, which take up to 12 bytes each there.
const MOST_TEXT: usize = 5000;

/// Most entities that are named in place of one that is not known.
const MOST_NAMES: usize = 10;

/// Where an answer begins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Position {
    /// Rows of the API's answer that an earlier answer had.
    pub skip: usize,
    /// What the API is asked for, if its answer is a page.
    pub page: Option<String>,
}

impl Position {
    fn read(cursor: &str) -> Result<Self, Refusal> {
        let wrong = || Refusal::from("cursor: is none that this tool gave; leave it out to begin anew");
        let (skip, page) = match cursor.split_once('.') {
            Some((skip, page)) => (skip, Some(page.to_owned())),
            None => (cursor, None),
        };
        let skip = skip.parse().map_err(|_| wrong())?;
        Ok(Self { skip, page })
    }

    pub fn write(&self) -> String {
        match &self.page {
            Some(page) => format!("{}.{page}", self.skip),
            None => self.skip.to_string(),
        }
    }
}

/// A request that is ready to be sent.
pub(super) struct Prepared<'k> {
    pub known: &'k KnownCall,
    pub request: ApiRequest,
    pub position: Position,
    /// Most rows of the API's answer.
    pub limit: Option<usize>,
}

/// Chooses the call that the arguments mean, and writes its request.
pub(super) async fn prepare<'k>(
    tool: &'k KnownTool,
    mut arguments: Object,
    api: &dyn Api,
) -> Result<Prepared<'k>, Refusal> {
    // What is null was left out: some models write all arguments.
    arguments.retain(|_, value| !value.is_null());
    check_names(tool, &arguments)?;
    let position = match arguments.remove(CURSOR) {
        None => Position::default(),
        Some(Value::String(cursor)) => Position::read(&cursor)?,
        Some(_) => return Err("cursor: must be a text".into()),
    };
    let known = tool
        .calls
        .iter()
        .find(|known| is_meant(&known.call.when, &arguments))
        .ok_or("these arguments can't be combined")?;
    let entity = match known.call.entity {
        None => None,
        Some(field) => Some((field, entity_of(&mut arguments, api).await?)),
    };
    let mut writer = Writer::default();
    for (name, value) in &arguments {
        match known.field(name) {
            Some(field) => writer.add(name, field, value)?,
            None if is_own(tool, name) => {}
            None => {
                let others: Vec<&str> = arguments
                    .keys()
                    .map(String::as_str)
                    .filter(|other| other != name)
                    .collect();
                return Err(match others.as_slice() {
                    [] => format!("{name}: needs another argument; the description of the tool says which")
                        .into(),
                    others => format!("{name}: can't be combined with {}", others.join(", ")).into(),
                });
            }
        }
    }
    for (name, value) in known.call.defaults {
        let argument = known.call.argument(name);
        if let Some(field) = known
            .field(argument)
            .filter(|_| !arguments.contains_key(argument))
        {
            writer.add(argument, field, &serde_json::from_str(value).unwrap_or_default())?;
        }
    }
    for (name, value) in known.call.fixed {
        let value = serde_json::from_str(value).unwrap_or_default();
        writer
            .body
            .get_or_insert_default()
            .insert((*name).to_owned(), value);
    }
    if let Some((field, id)) = entity {
        writer.query(field, &id);
    }
    match (known.call.paging, &position.page) {
        (Paging::Offset(_), _) => {
            writer.query("offset", &position.skip.to_string());
        }
        (Paging::Next { field, .. }, Some(page)) => {
            writer.query.retain(|(name, _)| name != field);
            writer.query(field, page);
        }
        (Paging::One | Paging::Whole(_) | Paging::Next { .. }, _) => {}
    }
    let limit = limit_of(known, &arguments);
    let takes_body = known.fields.iter().any(|field| field.place == Place::Body);
    Ok(Prepared {
        request: writer.request(known, takes_body)?,
        known,
        position,
        limit,
    })
}

/// Most rows of the answer: as asked for, or as the API says of itself.
fn limit_of(known: &KnownCall, arguments: &Object) -> Option<usize> {
    let field = known.fields.iter().find(|field| field.name == "limit")?;
    let given = arguments.get(known.call.argument("limit"));
    let given = given.and_then(|given| given.as_u64().or_else(|| given.as_str()?.parse().ok()));
    let limit = given.or_else(|| field.schema["default"].as_u64())?;
    usize::try_from(limit).ok()
}

fn is_own(tool: &KnownTool, name: &str) -> bool {
    tool.tool.own.iter().any(|(own, _)| *own == name)
}

/// Refuses arguments that the tool does not have: a mistyped one would have no effect.
fn check_names(tool: &KnownTool, arguments: &Object) -> Result<(), Refusal> {
    let names: Vec<&str> = tool.wire.input_schema["properties"]
        .as_object()
        .into_iter()
        .flat_map(|properties| properties.keys().map(String::as_str))
        .collect();
    for name in arguments.keys() {
        if !names.contains(&name.as_str()) {
            let meant = nearest(name, names.iter().copied());
            let hint = match meant {
                Some(meant) => format!("did you mean {meant}?"),
                None if names.is_empty() => "it takes none".to_owned(),
                None => format!("it takes {}", names.join(", ")),
            };
            let shown: String = name.chars().take(60).collect();
            return Err(format!("{shown}: is no argument of this tool; {hint}").into());
        }
    }
    let required = tool.wire.input_schema.get("required").and_then(Value::as_array);
    for name in required.into_iter().flatten().filter_map(Value::as_str) {
        if !arguments.contains_key(name) {
            return Err(format!("{name}: is required").into());
        }
    }
    Ok(())
}

fn is_meant(when: &When, arguments: &Object) -> bool {
    match when {
        When::Always => true,
        When::Given(names) => names.iter().all(|name| arguments.contains_key(*name)),
        When::Is(name, value) => arguments.get(*name).and_then(Value::as_str) == Some(value),
    }
}

/// The parts of a request.
#[derive(Default)]
struct Writer {
    path: Vec<(String, String)>,
    query: Vec<(String, String)>,
    body: Option<Object>,
}

impl Writer {
    fn query(&mut self, name: &str, value: &str) {
        self.query.push((name.to_owned(), value.to_owned()));
    }

    fn add(&mut self, argument: &str, field: &Field, value: &Value) -> Result<(), Refusal> {
        match field.place {
            Place::Body => {
                let body = self.body.get_or_insert_default();
                body.insert(field.name.clone(), value.clone());
            }
            Place::Query => {
                let text = text_of(value)
                    .ok_or_else(|| format!("{argument}: must be a text, a number or a list of texts"))?;
                // A path has limits of its own, whose errors name no argument.
                let most = field.schema["maxLength"].as_u64();
                let most = most
                    .and_then(|most| usize::try_from(most).ok())
                    .unwrap_or(MOST_TEXT);
                if text.chars().nth(most.min(MOST_TEXT)).is_some() {
                    let most = most.min(MOST_TEXT);
                    return Err(format!("{argument}: must have at most {most} characters").into());
                }
                self.query(&field.name, &text);
            }
            Place::Path => {
                let id = value.as_str().filter(|id| is_id(id));
                let id = id.ok_or_else(|| format!("{argument}: must be an id as the tools give it"))?;
                self.path.push((field.name.clone(), id.to_owned()));
            }
        }
        Ok(())
    }

    fn request(self, known: &KnownCall, takes_body: bool) -> Result<ApiRequest, Refusal> {
        let mut path = known.call.route.to_owned();
        for (name, value) in &self.path {
            path = path.replace(&format!("{{{name}}}"), value);
        }
        if let Some((_, missing)) = path.split_once('{') {
            let field = missing.split('}').next().unwrap_or_default();
            return Err(format!("{}: is required", known.call.argument(field)).into());
        }
        if !self.query.is_empty() {
            let mut query = Serializer::new(String::new());
            query.extend_pairs(&self.query);
            path = format!("{path}?{}", query.finish());
        }
        let body = self.body.or_else(|| takes_body.then(Object::new));
        Ok(ApiRequest {
            verb: known.call.verb,
            path,
            body: body.map(|body| json!(body).to_string().into_bytes()),
        })
    }
}

/// Whether a text is an id: what stands in a path must not lead elsewhere.
fn is_id(text: &str) -> bool {
    (1..=100).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

/// A value as a query string has it. The parts of a list are separated by commas.
fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Array(list) => {
            let parts: Option<Vec<&str>> = list.iter().map(Value::as_str).collect();
            Some(parts?.join(","))
        }
        Value::Null | Value::Object(_) => None,
    }
}

/// The id of the entity that the arguments `type` and `value` name, and the end of these arguments.
async fn entity_of(arguments: &mut Object, api: &dyn Api) -> Result<String, Refusal> {
    let mut take = |name: &str, most: usize| match arguments.remove(name) {
        Some(Value::String(text)) if text.chars().nth(most).is_some() => {
            Err(Refusal(format!("{name}: must have at most {most} characters")))
        }
        Some(Value::String(text)) if !text.trim().is_empty() => Ok(text.trim().to_owned()),
        _ => Err(Refusal(format!("{name}: must be a text"))),
    };
    let (kind, value) = (take("type", MAX_TYPE)?, take("value", MAX_VALUE)?);
    let key = EntityKey::new(&kind, &value).map_err(|error| Refusal(error.to_string()))?;
    if let Some(id) = find_entity(&key, api).await? {
        return Ok(id);
    }
    // The search finds parts of names as they are written; another spelling of the whole has this word in common.
    let word = value.split(|letter: char| !letter.is_alphanumeric());
    let word = word.max_by_key(|word| word.len()).unwrap_or_default();
    let found = find_entities(&kind, &value, api).await?;
    let spelled = match found.is_empty() {
        true => find_entities(&kind, word, api).await?,
        false => Vec::new(),
    };
    let wanted = plain(&value);
    let is_meant = |entity: &&Value| names_of(entity).any(|name| plain(name) == wanted);
    let exact = found.iter().chain(&spelled).find(is_meant);
    if let Some(entity) = exact {
        return Ok(entity["id"].as_str().unwrap_or_default().to_owned());
    }
    let known = found
        .iter()
        .take(MOST_NAMES)
        .filter_map(|entity| entity["name"].as_str());
    let known: Vec<String> = known.map(|name| format!("{name:?}")).collect();
    let meant = match known.as_slice() {
        [] => String::new(),
        known => format!(" Those with this in a name: {}.", known.join(", ")),
    };
    Err(
        format!("The memory knows no {kind} that is called {value:?}.{meant} `recall` searches the notes.")
            .into(),
    )
}

/// The entity with this key, if there is one.
async fn find_entity(key: &EntityKey, api: &dyn Api) -> Result<Option<String>, Refusal> {
    let id = key.to_string();
    let answer = api.send(node_request(&id)).await;
    match answer.status {
        200 => Ok(Some(id)),
        404 => Ok(None),
        _ => {
            let body = serde_json::from_slice(&answer.body).unwrap_or_default();
            Err(super::answer::said(&body, &[("value", "id")]).into())
        }
    }
}

/// The request that reads the node with this id.
fn node_request(id: &str) -> ApiRequest {
    let mut query = Serializer::new(String::new());
    query.extend_pairs([("id", id), ("limit", "1")]);
    ApiRequest {
        verb: Verb::Get,
        path: format!("/api/graph/node?{}", query.finish()),
        body: None,
    }
}

/// The entities of a type with this in a name, those with the most notes first.
async fn find_entities(kind: &str, part: &str, api: &dyn Api) -> Result<Vec<Value>, Refusal> {
    let answer = api.send(search_of(kind, part)).await;
    let mut found: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    if answer.status != 200 {
        return Err(super::answer::said(&found, &[("value", "q")]).into());
    }
    match found["entities"].take() {
        Value::Array(entities) => Ok(entities),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            Ok(Vec::new())
        }
    }
}

/// All that an entity is called.
fn names_of(entity: &Value) -> impl Iterator<Item = &str> {
    let aliases = entity["aliases"].as_array().into_iter().flatten();
    let own = [&entity["name"], &entity["entity_value"]];
    own.into_iter().chain(aliases).filter_map(Value::as_str)
}

/// The request that searches for entities by name.
fn search_of(kind: &str, value: &str) -> ApiRequest {
    let mut query = Serializer::new(String::new());
    query.extend_pairs([("type", kind), ("q", value), ("limit", "50")]);
    query.extend_pairs([("sort", "notes"), ("order", "desc")]);
    ApiRequest {
        verb: Verb::Get,
        path: format!("/api/entities?{}", query.finish()),
        body: None,
    }
}

/// A name without what spellings differ in.
fn plain(name: &str) -> String {
    let letters = name.chars().filter(|letter| letter.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}
