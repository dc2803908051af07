//! From the text of a schema to a graph of rules.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::AddAssign;

use serde_json::{Map, Number, Value};

use crate::loosen::loosen;
use crate::node::{Assertion, Assertions, Bound, Members, Node, NodeId, NodeKind, PatternId, Types, Validator};
use crate::pattern::{Pattern, Unusable};

/// What compiled schemas take, in memory and in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Schema objects; some 200 bytes each.
    pub schemas: usize,
    pub patterns: usize,
    /// The length of all patterns.
    pub pattern_bytes: usize,
    /// States of all automata; 16 bytes each, once a pattern is used.
    pub pattern_states: usize,
    /// Properties of Unicode in patterns (`\p{L}`), each a table that takes time to look up.
    pub properties: usize,
}

impl Cost {
    /// What of this is left when `other` is taken; the name of the first part that does not suffice.
    pub fn minus(self, other: Cost) -> Result<Cost, &'static str> {
        let sub = |have: usize, take: usize, what: &'static str| have.checked_sub(take).ok_or(what);
        Ok(Cost {
            schemas: sub(self.schemas, other.schemas, "subschemas")?,
            patterns: sub(self.patterns, other.patterns, "patterns")?,
            pattern_bytes: sub(self.pattern_bytes, other.pattern_bytes, "bytes of patterns")?,
            pattern_states: sub(self.pattern_states, other.pattern_states, "states of patterns")?,
            properties: sub(self.properties, other.properties, "Unicode properties in patterns")?,
        })
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Cost) {
        self.schemas += other.schemas;
        self.patterns += other.patterns;
        self.pattern_bytes += other.pattern_bytes;
        self.pattern_states += other.pattern_states;
        self.properties += other.properties;
    }
}

/// Why a schema cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    #[error("{}: {what}", shown(.at))]
    Wrong { at: String, what: String },
    /// It would be applied to the same value for ever.
    #[error("{}: it refers to itself without end", shown(.at))]
    Endless { at: String },
    /// It needs more than the room that was given.
    #[error("it has more {0} than allowed")]
    TooCostly(&'static str),
}

fn shown(at: &str) -> String {
    if at.is_empty() { "at the top".to_owned() } else { format!("at `{at}`") }
}

impl Validator {
    /// Compiles a schema, unless that takes more than `room`.
    pub fn compile(schema: &Value, room: Cost) -> Result<Validator, Invalid> {
        Validator::compile_reporting(schema, room, 1).map_err(|mut problems| problems.swap_remove(0))
    }

    /// Compiles what can be read of a schema, and leaves out the rest, which [`Validator::unread`] names. What fits the
    /// schema as its author meant it fits the result; `anyOf` and `oneOf` without alternatives refuse everything.
    pub fn compile_readable(schema: &Value, room: Cost) -> Result<Validator, Invalid> {
        let mut compiler = Compiler::new(schema, room, true);
        compiler.node(None, "", schema)?;
        while let Some((id, schema)) = compiler.open.pop() {
            compiler.validator.nodes[id.index()].kind = compiler.kind(id, schema)?;
        }
        compiler.refuse_circles()?;
        let Compiler { mut validator, faulty, .. } = compiler;
        loosen(&mut validator.nodes, &faulty);
        Ok(validator)
    }

    /// Compiles a schema. The error has at least one problem and at most `limit`, one for each schema object.
    pub fn compile_reporting(schema: &Value, room: Cost, limit: usize) -> Result<Validator, Vec<Invalid>> {
        let mut problems = Vec::new();
        let mut compiler = Compiler::new(schema, room, false);
        compiler.node(None, "", schema).map_err(|problem| vec![problem])?;
        while let Some((id, schema)) = compiler.open.pop() {
            match compiler.kind(id, schema) {
                Ok(kind) => compiler.validator.nodes[id.index()].kind = kind,
                Err(problem) => {
                    let is_last = matches!(problem, Invalid::TooCostly(_));
                    problems.push(problem);
                    if is_last || problems.len() >= limit {
                        return Err(problems);
                    }
                }
            }
        }
        problems.extend(compiler.refuse_circles().err());
        if problems.is_empty() { Ok(compiler.validator) } else { Err(problems) }
    }
}

/// Collects schemas by `$anchor` and `$dynamicAnchor`; in one document both lead to the same place. Depth is that of
/// parsed JSON.
fn find_anchors<'a>(part: &'a Value, anchors: &mut HashMap<&'a str, &'a Value>) {
    match part {
        Value::Object(members) => {
            for word in ["$anchor", "$dynamicAnchor"] {
                if let Some(Value::String(name)) = members.get(word) {
                    anchors.entry(name).or_insert(part);
                }
            }
            let is_data = |word: &str| matches!(word, "enum" | "const" | "default" | "examples");
            let schemas = members.iter().filter(|(word, _)| !is_data(word));
            schemas.for_each(|(_, member)| find_anchors(member, anchors));
        }
        Value::Array(items) => items.iter().for_each(|item| find_anchors(item, anchors)),
        _ => {}
    }
}

/// A fragment of an address as text; what is not valid stays as it is.
fn percent_decoded(fragment: &str) -> Cow<'_, str> {
    if !fragment.contains('%') {
        return Cow::Borrowed(fragment);
    }
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let [first, tail @ ..] = rest {
        let code = tail.get(..2).filter(|_| *first == b'%').and_then(|hex| std::str::from_utf8(hex).ok());
        let code = code.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        bytes.push(code.unwrap_or(*first));
        rest = &tail[if code.is_some() { 2 } else { 0 }..];
    }
    String::from_utf8(bytes).map_or(Cow::Borrowed(fragment), Cow::Owned)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Dialect {
    Draft4,
    Draft6And7,
    Draft2019,
    Draft2020,
}

impl Dialect {
    fn of(schema: &Value) -> Dialect {
        let named = schema.get("$schema").and_then(Value::as_str).unwrap_or_default();
        let known = [
            ("draft-04", Dialect::Draft4),
            ("draft-06", Dialect::Draft6And7),
            ("draft-07", Dialect::Draft6And7),
            ("2019-09", Dialect::Draft2019),
        ];
        known.iter().find(|(word, _)| named.contains(word)).map_or(Dialect::Draft2020, |(_, dialect)| *dialect)
    }
}

struct Compiler<'a> {
    root: &'a Value,
    dialect: Dialect,
    room: Cost,
    validator: Validator,
    /// Nodes by the address of their schema.
    known: HashMap<*const Value, NodeId>,
    sources: HashMap<&'a str, Option<PatternId>>,
    /// Schemas by their `$anchor`, found when the first reference to one is read.
    anchors: Option<HashMap<&'a str, &'a Value>>,
    open: Vec<(NodeId, &'a Value)>,
    /// Whether what cannot be read is left out.
    is_lenient: bool,
    /// Nodes of which a part was left out.
    faulty: Vec<NodeId>,
}

/// Faults of one schema that are named; people read them.
const MOST_FAULTS: usize = 16;

impl<'a> Compiler<'a> {
    fn new(schema: &'a Value, room: Cost, is_lenient: bool) -> Compiler<'a> {
        let dialect = Dialect::of(schema);
        let validator = Validator {
            nodes: Vec::new(),
            patterns: Vec::new(),
            floats_are_integers: dialect != Dialect::Draft4,
            cost: Cost::default(),
            unenforced: Vec::new(),
            unread: Vec::new(),
            is_of_older_draft: false,
        };
        Compiler {
            root: schema,
            dialect,
            room,
            validator,
            known: HashMap::new(),
            sources: HashMap::new(),
            anchors: None,
            open: Vec::new(),
            is_lenient,
            faulty: Vec::new(),
        }
    }

    /// Leaves out a part that cannot be read, or gives up.
    fn leave_out<T: Default>(&mut self, id: NodeId, what: impl Into<String>) -> Result<T, Invalid> {
        let wrong = self.wrong(id, what);
        if !self.is_lenient {
            return Err(wrong);
        }
        self.faulty.push(id);
        if self.validator.unread.len() < MOST_FAULTS {
            self.validator.unread.push(wrong.to_string());
        }
        Ok(T::default())
    }

    /// Whether a keyword may be read as an older draft has it, although the schema does not name that draft.
    fn reads_older(&mut self, is_written_so: bool) -> bool {
        let reads = self.is_lenient && is_written_so;
        self.validator.is_of_older_draft |= reads;
        reads
    }

    /// The node of a schema; its rules are read later.
    fn node(&mut self, parent: Option<NodeId>, step: &str, schema: &'a Value) -> Result<NodeId, Invalid> {
        if let Some(id) = self.known.get(&std::ptr::from_ref(schema)) {
            return Ok(*id);
        }
        self.charge(Cost { schemas: 1, ..Cost::default() })?;
        let id = NodeId(self.validator.nodes.len() as u32);
        self.validator.nodes.push(Node { parent, step: step.into(), kind: NodeKind::Anything });
        self.known.insert(schema, id);
        self.open.push((id, schema));
        Ok(id)
    }

    fn charge(&mut self, cost: Cost) -> Result<(), Invalid> {
        self.room = self.room.minus(cost).map_err(Invalid::TooCostly)?;
        self.validator.cost += cost;
        Ok(())
    }

    fn wrong(&self, id: NodeId, what: impl Into<String>) -> Invalid {
        Invalid::Wrong { at: self.validator.pointer(id), what: what.into() }
    }

    fn kind(&mut self, id: NodeId, schema: &'a Value) -> Result<NodeKind, Invalid> {
        match schema {
            Value::Bool(true) => Ok(NodeKind::Anything),
            Value::Bool(false) => Ok(NodeKind::Nothing),
            Value::Object(members) => Reader { compiler: self, id, members }.rules().map(NodeKind::Assertions),
            _ => self.leave_out(id, "a schema is an object, `true` or `false`"),
        }
    }

    /// The node that a local reference leads to: `#`, `#/$defs/x`, `#anchor`. Nothing is ever fetched.
    fn target(&mut self, id: NodeId, reference: &'a str) -> Result<Option<NodeId>, Invalid> {
        let Some(fragment) = reference.strip_prefix('#') else {
            let what = format!("`{reference}` is not a reference of the form `#/…`; nothing is fetched");
            return self.leave_out(id, what);
        };
        let root = self.root;
        let fragment = percent_decoded(fragment);
        let is_pointer = fragment.is_empty() || fragment.starts_with('/');
        let schema = if is_pointer { root.pointer(&fragment) } else { self.anchor(&fragment) };
        let Some(schema) = schema else {
            return self.leave_out(id, format!("the reference `{reference}` has no target"));
        };
        self.node(None, if is_pointer { &fragment } else { "" }, schema).map(Some)
    }

    fn anchor(&mut self, name: &str) -> Option<&'a Value> {
        let root = self.root;
        let anchors = self.anchors.get_or_insert_with(|| {
            let mut anchors = HashMap::new();
            find_anchors(root, &mut anchors);
            anchors
        });
        anchors.get(name).copied()
    }

    /// The pattern of a source; `None` where it is not enforced.
    fn pattern(&mut self, id: NodeId, source: &'a str) -> Result<Option<PatternId>, Invalid> {
        if let Some(known) = self.sources.get(source).copied() {
            self.faulty.extend(Some(id).filter(|_| known.is_none()));
            return Ok(known);
        }
        let properties = Pattern::properties(source);
        self.charge(Cost { patterns: 1, pattern_bytes: source.len(), properties, ..Cost::default() })?;
        let pattern = match Pattern::new(source) {
            Ok(pattern) => {
                self.charge(Cost { pattern_states: pattern.states(), ..Cost::default() })?;
                self.validator.patterns.push(pattern);
                Some(PatternId(self.validator.patterns.len() as u32 - 1))
            }
            Err(Unusable::Unsupported(why)) => {
                let at = self.validator.pointer(id);
                self.validator.unenforced.push(format!("the pattern {} is not enforced: {why}", shown(&at)));
                self.faulty.push(id);
                None
            }
            Err(Unusable::Invalid(why)) => self.leave_out(id, format!("a pattern is not valid: {why}"))?,
        };
        self.sources.insert(source, pattern);
        Ok(pattern)
    }

    /// A schema that comes back to itself on the same value would never end.
    fn refuse_circles(&self) -> Result<(), Invalid> {
        #[derive(Clone, Copy, PartialEq, Eq)]
        enum Mark {
            New,
            Open,
            Done,
        }
        let nodes = &self.validator.nodes;
        let mut marks = vec![Mark::New; nodes.len()];
        for start in 0..nodes.len() {
            let mut way = vec![(NodeId(start as u32), false)];
            while let Some((id, is_left)) = way.pop() {
                if is_left {
                    marks[id.index()] = Mark::Done;
                    continue;
                }
                match marks[id.index()] {
                    Mark::Done => continue,
                    Mark::Open => return Err(Invalid::Endless { at: self.validator.pointer(id) }),
                    Mark::New => {}
                }
                marks[id.index()] = Mark::Open;
                way.push((id, true));
                way.extend(
                    nodes[id.index()]
                        .same_value()
                        .filter(|next| marks[next.index()] != Mark::Done)
                        .map(|next| (next, false)),
                );
            }
        }
        Ok(())
    }
}

/// Reads the keywords of one schema object.
struct Reader<'c, 'a> {
    compiler: &'c mut Compiler<'a>,
    id: NodeId,
    members: &'a Map<String, Value>,
}

impl<'a> Reader<'_, 'a> {
    fn member(&self, word: &str) -> Option<&'a Value> {
        /// Up to here looking at every key is faster than hashing one, and compiling is mostly this.
        const FEW: usize = 16;
        match self.members.len() {
            ..=FEW => self.members.iter().find(|(key, _)| *key == word).map(|(_, value)| value),
            _ => self.members.get(word),
        }
    }

    fn rules(mut self) -> Result<Assertions, Invalid> {
        let mut rules = Assertions::default();
        self.definitions()?;
        for word in ["$ref", "$dynamicRef", "$recursiveRef"] {
            if let Some(reference) = self.text(word)? {
                rules.rules.extend(self.compiler.target(self.id, reference)?.map(Assertion::Reference));
                if self.compiler.dialect <= Dialect::Draft6And7 {
                    // Up to draft 7 nothing beside a reference counts.
                    return Ok(rules);
                }
            }
        }
        rules.types = self.types()?;
        self.values(&mut rules.rules)?;
        self.numbers(&mut rules.rules)?;
        self.texts(&mut rules.rules)?;
        self.arrays(&mut rules.rules)?;
        self.objects(&mut rules.rules)?;
        self.combined(&mut rules.rules)?;
        if self.compiler.dialect >= Dialect::Draft2019 {
            rules.unevaluated_items = self.schema("unevaluatedItems")?;
            rules.unevaluated_properties = self.schema("unevaluatedProperties")?;
        }
        Ok(rules)
    }

    /// Also those that nothing refers to must be schemas: a client may read them.
    fn definitions(&mut self) -> Result<(), Invalid> {
        for word in ["$defs", "definitions"] {
            self.schemas_by_name(word)?;
        }
        Ok(())
    }

    fn types(&mut self) -> Result<Option<Types>, Invalid> {
        let named = |value: &Value| value.as_str().and_then(Types::named);
        match self.member("type") {
            None => Ok(None),
            Some(Value::Array(names)) if !names.is_empty() => {
                let types = names.iter().try_fold(Types::default(), |types, name| Some(types.with(named(name)?)));
                if types.is_some() { Ok(types) } else { self.leave_out("`type` has a word that is not a type") }
            }
            Some(name) => match named(name) {
                Some(types) => Ok(Some(types)),
                None => self.leave_out("`type` is not the name of a type"),
            },
        }
    }

    fn values(&mut self, rules: &mut Vec<Assertion>) -> Result<(), Invalid> {
        if let Some(constant) = self.member("const")
            && self.compiler.dialect > Dialect::Draft4
        {
            rules.push(Assertion::Const(constant.clone()));
        }
        if let Some(choices) = self.array("enum")? {
            let texts = choices.iter().filter_map(Value::as_str).map(Box::from).collect();
            let others = choices.iter().filter(|choice| !choice.is_string()).cloned().collect();
            rules.push(Assertion::Enum { texts, others });
        }
        Ok(())
    }

    fn numbers(&mut self, rules: &mut Vec<Assertion>) -> Result<(), Invalid> {
        let is_old = self.compiler.dialect == Dialect::Draft4;
        let sides = [
            ("minimum", "exclusiveMinimum", Bound::AtLeast, Bound::Above),
            ("maximum", "exclusiveMaximum", Bound::AtMost, Bound::Below),
        ];
        for (plain, exclusive, at, beyond) in sides {
            let is_flag = self.member(exclusive).is_some_and(Value::is_boolean);
            let is_old = is_old || self.compiler.reads_older(is_flag);
            let excludes = is_old && self.flag(exclusive)?;
            if let Some(limit) = self.number(plain)? {
                let bound = if excludes { beyond } else { at };
                rules.push(Assertion::Bound { keyword: plain, bound, limit });
            }
            if let Some(limit) = if is_old { None } else { self.number(exclusive)? } {
                rules.push(Assertion::Bound { keyword: exclusive, bound: beyond, limit });
            }
        }
        if let Some(step) = self.number("multipleOf")? {
            match step.as_f64().is_some_and(|step| step > 0.0) {
                true => rules.push(Assertion::MultipleOf(step)),
                false => self.leave_out("`multipleOf` is not above 0")?,
            }
        }
        Ok(())
    }

    fn texts(&mut self, rules: &mut Vec<Assertion>) -> Result<(), Invalid> {
        for (keyword, bound) in [("minLength", Bound::AtLeast), ("maxLength", Bound::AtMost)] {
            rules.extend(self.count(keyword)?.map(|limit| Assertion::Length { keyword, bound, limit }));
        }
        if let Some(source) = self.text("pattern")? {
            rules.extend(self.compiler.pattern(self.id, source)?.map(Assertion::Pattern));
        }
        Ok(())
    }

    fn arrays(&mut self, rules: &mut Vec<Assertion>) -> Result<(), Invalid> {
        for (keyword, bound) in [("minItems", Bound::AtLeast), ("maxItems", Bound::AtMost)] {
            rules.extend(self.count(keyword)?.map(|limit| Assertion::ItemCount { keyword, bound, limit }));
        }
        if self.flag("uniqueItems")? {
            rules.push(Assertion::UniqueItems);
        }
        let has_array = self.member("items").is_some_and(Value::is_array);
        let is_old = self.compiler.dialect < Dialect::Draft2020 || self.compiler.reads_older(has_array);
        let has_tuple = is_old && has_array;
        let (prefix_keyword, rest_keyword) = match (is_old, has_tuple) {
            (true, true) => ("items", "additionalItems"),
            _ => ("prefixItems", "items"),
        };
        let known = self.faults();
        let prefix = if is_old && !has_tuple { Vec::new() } else { self.schemas(prefix_keyword)? };
        // Any item may be one of the first.
        let rest = if self.faults() == known { self.schema(rest_keyword)? } else { None };
        if !prefix.is_empty() || rest.is_some() {
            rules.push(Assertion::Items { prefix, prefix_keyword, rest, rest_keyword });
        }
        if self.compiler.dialect > Dialect::Draft4
            && let Some(node) = self.schema("contains")?
        {
            let counts = self.compiler.dialect >= Dialect::Draft2019;
            let known = self.faults();
            let min = if counts { self.count("minContains")?.unwrap_or(1) } else { 1 };
            let min = if self.faults() == known { min } else { 0 };
            let max = if counts { self.count("maxContains")? } else { None };
            rules.push(Assertion::Contains { node, min, max });
        }
        Ok(())
    }

    fn objects(&mut self, rules: &mut Vec<Assertion>) -> Result<(), Invalid> {
        for (keyword, bound) in [("minProperties", Bound::AtLeast), ("maxProperties", Bound::AtMost)] {
            rules.extend(self.count(keyword)?.map(|limit| Assertion::MemberCount { keyword, bound, limit }));
        }
        if self.member("required").is_some() {
            let names = self.names("required", self.member("required"))?;
            rules.push(Assertion::Required(names));
        }
        let mut members = Members { additional: self.schema("additionalProperties")?, ..Members::default() };
        let known = self.faults();
        members.named =
            self.schemas_by_name("properties")?.into_iter().map(|(name, node)| (name.into(), node)).collect();
        for (source, node) in self.schemas_by_name("patternProperties")? {
            match self.compiler.pattern(self.id, source)? {
                Some(pattern) => members.patterns.push((pattern, node)),
                // Any member may be one that the pattern means.
                None => members.additional = None,
            }
        }
        if self.faults() > known {
            members.additional = None;
        }
        if members.additional.is_some() || !members.named.is_empty() || !members.patterns.is_empty() {
            rules.push(Assertion::Members(members));
        }
        if self.compiler.dialect > Dialect::Draft4 {
            rules.extend(self.schema("propertyNames")?.map(Assertion::PropertyNames));
        }
        self.dependencies(rules)
    }

    fn dependencies(&mut self, rules: &mut Vec<Assertion>) -> Result<(), Invalid> {
        let (mut required, mut schemas) = (Vec::new(), Vec::new());
        if self.compiler.dialect >= Dialect::Draft2019 {
            for (name, wanted) in self.object("dependentRequired")?.into_iter().flatten() {
                required.push((name.as_str().into(), self.names("dependentRequired", Some(wanted))?));
            }
            let named = self.schemas_by_name("dependentSchemas")?;
            schemas.extend(named.into_iter().map(|(name, node)| (name.into(), node)));
        } else {
            for (name, wanted) in self.object("dependencies")?.into_iter().flatten() {
                match wanted {
                    Value::Array(_) => {
                        required.push((name.as_str().into(), self.names("dependencies", Some(wanted))?));
                    }
                    schema => schemas.push((name.as_str().into(), self.child("dependencies", Some(name), schema)?)),
                }
            }
        }
        if !required.is_empty() {
            rules.push(Assertion::DependentRequired(required));
        }
        if !schemas.is_empty() {
            rules.push(Assertion::DependentSchemas(schemas));
        }
        Ok(())
    }

    fn combined(&mut self, rules: &mut Vec<Assertion>) -> Result<(), Invalid> {
        for word in ["allOf", "anyOf", "oneOf"] {
            if self.members.contains_key(word) {
                let known = self.faults();
                let nodes = self.schemas(word)?;
                if self.faults() > known {
                    continue;
                }
                if nodes.is_empty() && !self.compiler.is_lenient {
                    return Err(self.compiler.wrong(self.id, format!("`{word}` is empty")));
                }
                rules.push(match word {
                    "allOf" => Assertion::AllOf(nodes),
                    "anyOf" => Assertion::AnyOf(nodes),
                    _ => Assertion::OneOf(nodes),
                });
            }
        }
        rules.extend(self.schema("not")?.map(Assertion::Not));
        if self.compiler.dialect >= Dialect::Draft6And7
            && let Some(condition) = self.schema("if")?
        {
            let (then, otherwise) = (self.schema("then")?, self.schema("else")?);
            rules.push(Assertion::If { condition, then, otherwise });
        }
        Ok(())
    }

    fn leave_out<T: Default>(&mut self, what: impl Into<String>) -> Result<T, Invalid> {
        self.compiler.leave_out(self.id, what)
    }

    /// How many parts were left out so far.
    fn faults(&self) -> usize {
        self.compiler.faulty.len()
    }

    fn child(&mut self, word: &str, name: Option<&str>, schema: &'a Value) -> Result<NodeId, Invalid> {
        let step = match name {
            Some(name) => format!("/{word}/{}", name.replace('~', "~0").replace('/', "~1")),
            None => format!("/{word}"),
        };
        self.compiler.node(Some(self.id), &step, schema)
    }

    fn schema(&mut self, word: &'static str) -> Result<Option<NodeId>, Invalid> {
        match self.member(word) {
            Some(schema) => self.child(word, None, schema).map(Some),
            None => Ok(None),
        }
    }

    fn schemas(&mut self, word: &'static str) -> Result<Vec<NodeId>, Invalid> {
        let schemas = self.array(word)?.map_or(&[][..], Vec::as_slice);
        let child = |(place, schema): (usize, &'a Value)| self.child(word, Some(&place.to_string()), schema);
        schemas.iter().enumerate().map(child).collect()
    }

    fn schemas_by_name(&mut self, word: &'static str) -> Result<Vec<(&'a str, NodeId)>, Invalid> {
        let schemas = self.object(word)?.into_iter().flatten();
        schemas.map(|(name, schema)| Ok((name.as_str(), self.child(word, Some(name), schema)?))).collect()
    }

    fn names(&mut self, word: &str, value: Option<&Value>) -> Result<Vec<Box<str>>, Invalid> {
        let names = value.and_then(Value::as_array);
        let names = names.and_then(|names| names.iter().map(|name| name.as_str().map(Box::from)).collect());
        names.map_or_else(|| self.leave_out(format!("`{word}` is not a list of names")), Ok)
    }

    /// What a keyword holds, where it holds what it should.
    fn read<T>(
        &mut self,
        word: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
        expected: &str,
    ) -> Result<Option<T>, Invalid> {
        match self.member(word).map(read) {
            Some(None) => self.leave_out(format!("`{word}` is not {expected}")),
            read => Ok(read.flatten()),
        }
    }

    fn array(&mut self, word: &str) -> Result<Option<&'a Vec<Value>>, Invalid> {
        self.read(word, Value::as_array, "an array")
    }

    fn object(&mut self, word: &str) -> Result<Option<&'a Map<String, Value>>, Invalid> {
        self.read(word, Value::as_object, "an object")
    }

    fn text(&mut self, word: &str) -> Result<Option<&'a str>, Invalid> {
        self.read(word, Value::as_str, "a string")
    }

    fn number(&mut self, word: &str) -> Result<Option<Number>, Invalid> {
        self.read(word, |value| value.as_number().cloned(), "a number")
    }

    fn flag(&mut self, word: &str) -> Result<bool, Invalid> {
        Ok(self.read(word, Value::as_bool, "`true` or `false`")?.unwrap_or_default())
    }

    fn count(&mut self, word: &str) -> Result<Option<u64>, Invalid> {
        let whole = |float: f64| (float >= 0.0 && float.fract() == 0.0).then_some(float as u64);
        self.read(word, |value| value.as_u64().or_else(|| whole(value.as_f64()?)), "a count")
    }
}
