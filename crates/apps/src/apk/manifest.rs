//! Android manifests: the app, and its components with their filters and meta-data.

use sinew_tool::text::clean_line;

use super::element::{XmlElement, XmlValue};
use super::{ApkError, MAX_MANIFEST};

/// Components may share one long string, so the sum of all texts of a manifest is bounded.
const MAX_TEXT: usize = 4 * MAX_MANIFEST;

/// An app's manifest.
#[derive(Clone, Debug, PartialEq)]
pub struct AndroidManifest {
    pub package: String,
    pub version_name: String,
    pub version_code: u64,
    /// SHA-256 of the signing certificate, in hexadecimal; a source manifest has none.
    pub certificate_sha256: Option<String>,
    pub min_sdk: u32,
    pub target_sdk: u32,
    /// Permissions that the app requests.
    pub permissions: Vec<String>,
    /// Permissions that the app declares, with their protection level (`normal` if none is written).
    pub declared: Vec<(String, String)>,
    /// Meta-data of the app as a whole.
    pub meta: Vec<MetaData>,
    pub components: Vec<Component>,
    /// The name of the split, if the APK is only a part of an app.
    pub split: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ComponentKind {
    Activity,
    Service,
    Receiver,
    Provider,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Component {
    pub kind: ComponentKind,
    /// The full name of its class.
    pub name: String,
    /// As written; [`AndroidManifest::is_exported`] knows the default.
    pub exported: Option<bool>,
    pub enabled: bool,
    /// The permission that a caller needs; for a provider, to read from it.
    pub permission: Option<String>,
    /// Empty except for providers.
    pub authorities: Vec<String>,
    pub filters: Vec<IntentFilter>,
    pub meta: Vec<MetaData>,
    /// Line in the source, counted from 1.
    pub line: u32,
    /// The resource that has the authorities, if they are a reference.
    authorities_reference: Option<u32>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct IntentFilter {
    pub actions: Vec<String>,
    pub categories: Vec<String>,
    pub mime_types: Vec<String>,
    pub line: u32,
}

/// A `<meta-data>` or `<property>`.
#[derive(Clone, Debug, PartialEq)]
pub struct MetaData {
    pub name: String,
    /// `android:value`; a resolved reference is replaced by its value.
    pub value: Option<XmlValue>,
    /// Whether the value came from a string resource, where quotes are escaped differently.
    pub from_resource: bool,
    /// `android:resource`, as written.
    pub resource: Option<XmlValue>,
    /// The XML file that `android:resource` names, if it was read.
    pub file: Option<XmlElement>,
    pub line: u32,
}

impl ComponentKind {
    fn from_tag(tag: &str) -> Option<ComponentKind> {
        Some(match tag {
            "activity" | "activity-alias" => ComponentKind::Activity,
            "service" => ComponentKind::Service,
            "receiver" => ComponentKind::Receiver,
            "provider" => ComponentKind::Provider,
            _ => return None,
        })
    }

    pub fn as_str(self) -> &'static str {
        match self {
            ComponentKind::Activity => "activity",
            ComponentKind::Service => "service",
            ComponentKind::Receiver => "receiver",
            ComponentKind::Provider => "provider",
        }
    }
}

impl AndroidManifest {
    /// Reads the element `<manifest>` of an APK or a source.
    pub fn from_element(root: &XmlElement) -> Result<AndroidManifest, ApkError> {
        if &*root.name != "manifest" {
            return Err(ApkError::NotAnApk(format!(
                "the root element of the manifest is <{}>, expected <manifest>",
                clean_line(&root.name, 60)
            )));
        }
        let mut budget = TextBudget(MAX_TEXT);
        let package = budget.text(root.plain("package"))?.unwrap_or_default();
        let number = |name: &str| root.android(name).and_then(XmlValue::to_number).unwrap_or_default();
        let sdk = root.children_named("uses-sdk").next();
        let level = |name: &str| sdk.and_then(|sdk| sdk.android(name)).and_then(XmlValue::to_number);
        let min_sdk = level("minSdkVersion").unwrap_or(1);
        let mut manifest = AndroidManifest {
            version_name: budget.text(root.android("versionName"))?.unwrap_or_default(),
            version_code: u64::from(number("versionCodeMajor")) << 32 | u64::from(number("versionCode")),
            certificate_sha256: None,
            min_sdk,
            target_sdk: level("targetSdkVersion").unwrap_or(min_sdk),
            permissions: Vec::new(),
            declared: Vec::new(),
            meta: Vec::new(),
            components: Vec::new(),
            split: budget.text(root.plain("split"))?,
            package,
        };
        for asked in root.children_named("uses-permission") {
            manifest.permissions.extend(budget.text(asked.android("name"))?);
        }
        for declared in root.children_named("permission") {
            let Some(name) = budget.text(declared.android("name"))? else { continue };
            let level = declared.android("protectionLevel").map(protection);
            manifest.declared.push((name, level.unwrap_or_else(|| "normal".to_owned())));
        }
        let Some(application) = root.children_named("application").next() else { return Ok(manifest) };
        manifest.meta = meta(application, &mut budget)?;
        let whole = application.android("permission");
        let enabled = application.android("enabled").and_then(XmlValue::to_bool).unwrap_or(true);
        for element in &application.children {
            let Some(kind) = ComponentKind::from_tag(&element.name) else { continue };
            let mut component = component(kind, element, &manifest.package, &mut budget)?;
            component.enabled &= enabled;
            if component.permission.is_none() {
                component.permission = budget.text(whole)?;
            }
            manifest.components.push(component);
        }
        Ok(manifest)
    }

    /// Whether other apps reach the component. Without `android:exported`, a component with a filter is exported, and
    /// so was a provider until Android 4.2. Since Android 12 an app with a filter and without it is not installed.
    pub fn is_exported(&self, component: &Component) -> bool {
        component.exported.unwrap_or(match component.kind {
            ComponentKind::Provider => self.target_sdk < 17,
            _ => !component.filters.is_empty(),
        })
    }

    /// The full name of a class that the manifest may abbreviate.
    pub fn full_name(package: &str, name: &str) -> String {
        match name.find('.') {
            Some(0) => format!("{package}{name}"),
            Some(_) => name.to_owned(),
            None => format!("{package}.{name}"),
        }
    }
}

impl Component {
    /// `package/.Class`, as adb and Android print it.
    pub fn short_name(&self, package: &str) -> String {
        match self.name.strip_prefix(package).filter(|rest| rest.starts_with('.')) {
            Some(rest) => format!("{package}/{rest}"),
            None => format!("{package}/{}", self.name),
        }
    }

    pub fn has_action(&self, action: &str) -> bool {
        self.filters.iter().any(|filter| filter.actions.iter().any(|one| one == action))
    }

    pub fn meta(&self, name: &str) -> Option<&MetaData> {
        self.meta.iter().find(|meta| meta.name == name)
    }

    pub(super) fn has_references(&self) -> bool {
        !self.references().is_empty()
    }

    /// The resources it refers to, each once.
    pub(super) fn references(&self) -> Vec<u32> {
        let of_meta = |meta: &MetaData| {
            let id = |value: &Option<XmlValue>| match value {
                Some(XmlValue::Reference(id)) => Some(*id),
                _ => None,
            };
            [id(&meta.value), id(&meta.resource)]
        };
        let mut ids: Vec<u32> =
            self.meta.iter().flat_map(of_meta).flatten().chain(self.authorities_reference).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    pub(super) fn names_a_file(&self, id: u32) -> bool {
        self.meta.iter().any(|meta| meta.resource == Some(XmlValue::Reference(id)))
    }

    /// Replaces the references to a resource by its value.
    pub(super) fn put(&mut self, id: u32, value: &XmlValue, file: Option<XmlElement>) {
        for meta in &mut self.meta {
            if meta.value == Some(XmlValue::Reference(id)) {
                meta.value = Some(value.clone());
                meta.from_resource = true;
            }
            if meta.resource == Some(XmlValue::Reference(id)) {
                meta.file = file.clone();
            }
        }
        if self.authorities_reference == Some(id)
            && let Some(text) = value.to_text()
        {
            self.authorities = split_authorities(&text);
        }
    }
}

fn component(
    kind: ComponentKind,
    element: &XmlElement,
    package: &str,
    budget: &mut TextBudget,
) -> Result<Component, ApkError> {
    let truth = |name: &str| element.android(name).and_then(XmlValue::to_bool);
    let name = budget.text(element.android("name"))?.unwrap_or_default();
    let permission = match (kind, element.android("readPermission")) {
        (ComponentKind::Provider, Some(read)) => Some(read),
        _ => element.android("permission"),
    };
    let authorities = element.android("authorities");
    let mut filters = Vec::new();
    for filter in element.children_named("intent-filter") {
        let mut found = IntentFilter { line: filter.line, ..IntentFilter::default() };
        for child in &filter.children {
            match &*child.name {
                "action" => found.actions.extend(budget.text(child.android("name"))?),
                "category" => found.categories.extend(budget.text(child.android("name"))?),
                "data" => found.mime_types.extend(budget.text(child.android("mimeType"))?),
                _ => {}
            }
        }
        filters.push(found);
    }
    Ok(Component {
        kind,
        name: AndroidManifest::full_name(package, &name),
        exported: truth("exported"),
        enabled: truth("enabled").unwrap_or(true),
        permission: budget.text(permission)?.filter(|name| !name.is_empty()),
        authorities: budget.text(authorities)?.map(|text| split_authorities(&text)).unwrap_or_default(),
        filters,
        meta: meta(element, budget)?,
        line: element.line,
        authorities_reference: match authorities {
            Some(XmlValue::Reference(id)) => Some(*id),
            _ => None,
        },
    })
}

fn meta(element: &XmlElement, budget: &mut TextBudget) -> Result<Vec<MetaData>, ApkError> {
    let mut found = Vec::new();
    for child in element.children.iter().filter(|child| matches!(&*child.name, "meta-data" | "property")) {
        let Some(name) = budget.text(child.android("name"))? else { continue };
        // Values are shared, not copied.
        let (value, resource) = (child.android("value").cloned(), child.android("resource").cloned());
        found.push(MetaData { name, value, from_resource: false, resource, file: None, line: child.line });
    }
    Ok(found)
}

fn split_authorities(text: &str) -> Vec<String> {
    text.split(';').map(str::trim).filter(|one| !one.is_empty()).map(str::to_owned).collect()
}

/// The base level of a permission; its flags (privileged, preinstalled) do not matter to callers.
fn protection(value: &XmlValue) -> String {
    match value {
        XmlValue::Number(number) => match number & 0xf {
            0 => "normal".to_owned(),
            1 => "dangerous".to_owned(),
            2 | 3 => "signature".to_owned(),
            4 => "internal".to_owned(),
            other => other.to_string(),
        },
        other => other.to_text().unwrap_or_default(),
    }
}

/// How many bytes of text may still be copied.
struct TextBudget(usize);

impl TextBudget {
    fn text(&mut self, value: Option<&XmlValue>) -> Result<Option<String>, ApkError> {
        let Some(text) = value.and_then(XmlValue::to_text) else { return Ok(None) };
        let left = self.0.checked_sub(text.len());
        self.0 = left.ok_or_else(|| ApkError::Refused(format!("the manifest's texts exceed {MAX_TEXT} bytes")))?;
        Ok(Some(text))
    }
}
