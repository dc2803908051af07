//! Reading APKs: the manifest, resources, signer and code strings, from the few ranges of the file that hold them.
//!
//! [`source`] provides the bytes, `zip` finds entries, `binary_xml` and [`source_xml`] read the two forms of a
//! manifest into [`XmlElement`]s, `resources` looks up references, `signature` names the signer, `dex` searches the
//! code, and [`manifest`] is the result. [`crate::offer`] decides what an app offers.
//! Every byte is treated as hostile: sizes, depths and counts are bounded.

mod binary_xml;
mod bytes;
mod dex;
mod element;
pub mod manifest;
mod resources;
mod signature;
pub mod source;
pub mod source_xml;
mod zip;

pub use dex::read_code;
pub use element::{XmlAttribute, XmlElement, XmlValue};
pub use manifest::{AndroidManifest, Component, ComponentKind, IntentFilter, MetaData};
pub use source::{ApkFile, ReadAt};

use resources::ResourceTable;
use source::RangeCache;
use zip::ZipDirectory;

/// Real manifests have up to about one megabyte.
pub const MAX_MANIFEST: usize = 4 << 20;
/// A compressed resource table must fit into memory; an uncompressed one is read in ranges.
const MAX_TABLE: usize = 64 << 20;

/// Why an APK cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApkError {
    #[error("the APK could not be read: {0}")]
    Unreadable(String),
    #[error("not an APK: {0}")]
    NotAnApk(String),
    #[error("the APK is damaged: {0}")]
    Damaged(String),
    /// Complete, but built to mislead or to exhaust its reader.
    #[error("the APK is refused: {0}")]
    Refused(String),
}

impl ApkError {
    fn damaged(what: impl Into<String>) -> ApkError {
        ApkError::Damaged(what.into())
    }
}

/// Reads the manifest of an APK. References to resources are resolved in the components that `wanted` accepts; if it
/// accepts none, the resources are not read at all.
pub async fn read_manifest(
    source: &dyn ReadAt,
    wanted: &(dyn Fn(&Component) -> bool + Sync),
) -> Result<AndroidManifest, ApkError> {
    let mut window = RangeCache::new(source);
    let directory = zip::read_directory(&mut window).await?;
    let certificate = signature::certificate(&mut window, &directory).await?;
    let root = read_xml(&mut window, &directory, "AndroidManifest.xml").await?;
    let mut manifest = AndroidManifest::from_element(&root)?;
    manifest.certificate_sha256 = certificate;
    resolve(&mut window, &directory, &mut manifest, wanted).await?;
    Ok(manifest)
}

/// The binary XML of an entry, for comparisons with other readers.
pub async fn read_tree(source: &dyn ReadAt, entry: &str) -> Result<XmlElement, ApkError> {
    let mut window = RangeCache::new(source);
    let directory = zip::read_directory(&mut window).await?;
    read_xml(&mut window, &directory, entry).await
}

/// One value of a resource table; `None` if the table does not have it.
pub async fn look_up(table: &dyn ReadAt, id: u32) -> Result<Option<XmlValue>, ApkError> {
    ResourceTable::open(RangeCache::new(table), 0, table.len()).await?.look_up(id).await
}

/// Reads binary XML in memory.
pub fn parse_binary_xml(bytes: &[u8]) -> Result<XmlElement, ApkError> {
    binary_xml::parse(bytes)
}

async fn read_xml(window: &mut RangeCache<'_>, directory: &ZipDirectory, name: &str) -> Result<XmlElement, ApkError> {
    let entry = directory.find(name)?;
    let entry = entry.ok_or_else(|| ApkError::NotAnApk(format!("the archive has no {name}")))?;
    let bytes = zip::read_entry(window, directory, entry, MAX_MANIFEST).await?;
    binary_xml::parse(&bytes).map_err(|error| match error {
        ApkError::Damaged(what) => ApkError::Damaged(format!("{name}: {what}")),
        ApkError::Refused(what) => ApkError::Refused(format!("{name}: {what}")),
        other => other,
    })
}

async fn resolve(
    window: &mut RangeCache<'_>,
    directory: &ZipDirectory,
    manifest: &mut AndroidManifest,
    wanted: &(dyn Fn(&Component) -> bool + Sync),
) -> Result<(), ApkError> {
    let needs = |component: &Component| component.has_references() && wanted(component);
    if !manifest.components.iter().any(needs) {
        return Ok(());
    }
    let Some(entry) = directory.find("resources.arsc")? else { return Ok(()) };
    let inflated;
    let mut table = if entry.is_stored() {
        let at = zip::data_offset(window, directory, entry).await?;
        ResourceTable::open(RangeCache::new(window.source()), at, entry.size).await?
    } else {
        inflated = zip::read_entry(window, directory, entry, MAX_TABLE).await?;
        ResourceTable::open(RangeCache::new(&inflated), 0, inflated.len() as u64).await?
    };
    for index in 0..manifest.components.len() {
        if !needs(&manifest.components[index]) {
            continue;
        }
        for id in manifest.components[index].references() {
            let Some(value) = table.look_up(id).await? else { continue };
            let XmlValue::Text(path) = &value else {
                manifest.components[index].put(id, &value, None);
                continue;
            };
            // A meta-data's resource is often a file of the archive.
            let is_file = manifest.components[index].names_a_file(id) && path.ends_with(".xml");
            let tree = match is_file {
                true => read_xml(window, directory, path).await.ok(),
                false => None,
            };
            manifest.components[index].put(id, &value, tree);
        }
    }
    Ok(())
}
