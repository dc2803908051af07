//! Reading many packages in parallel: what each APK offers, and what the apps answer when they are queried.

use std::sync::Arc;

use tokio::task::JoinSet;

use crate::apk::ApkError;
use crate::offer::finding;
use crate::offer::{self, AppOffer, ProtocolNames};
use crate::packages::InstalledPackage;
use crate::phone_file::{self, PhoneFile};
use crate::query;
use crate::rules;
use sinew_phones::PhoneAccess;

/// Commands that run on one phone at the same time. Phones have about eight cores and each command is a process, so
/// more would not be faster.
const MAX_PARALLEL: usize = 8;

/// Packages whose ends are in memory at once, 64 KB each.
const MAX_HELD: usize = 256;

/// What an APK offers, before the app was queried.
pub(crate) type ScannedOffer = Result<Arc<AppOffer>, ApkError>;

/// Reads the APKs of some packages.
pub(crate) async fn read(
    access: &Arc<dyn PhoneAccess>,
    packages: Vec<InstalledPackage>,
    names: &ProtocolNames,
) -> Vec<(InstalledPackage, ScannedOffer)> {
    let names = Arc::new(names.clone());
    let mut found = Vec::with_capacity(packages.len());
    for held in packages.chunks(MAX_HELD) {
        let groups = held.chunks(phone_file::FILES_PER_COMMAND).map(|group| {
            let (access, group) = (access.clone(), group.to_vec());
            async move {
                let paths: Vec<&str> = group.iter().map(|one| one.path.as_str()).collect();
                let files = phone_file::open(&access, &paths).await;
                group.into_iter().zip(files).collect::<Vec<_>>()
            }
        });
        let files: Vec<(InstalledPackage, Result<PhoneFile, ApkError>)> =
            side_by_side(groups.collect()).await.into_iter().flatten().collect();
        let readings = files.into_iter().map(|(installed, file)| {
            let names = names.clone();
            async move {
                let read = async { Ok(Arc::new(offer::read(&file?, &names).await?.1)) };
                (installed, read.await)
            }
        });
        found.extend(side_by_side(readings.collect()).await);
    }
    found
}

/// Queries the apps whose APKs leave tools open, and reports each as soon as it is complete: a slow app does not
/// delay the others.
pub(crate) async fn ask(
    access: &Arc<dyn PhoneAccess>,
    found: Vec<(InstalledPackage, ScannedOffer)>,
    names: &ProtocolNames,
    report: impl FnMut((InstalledPackage, ScannedOffer, AppOffer)),
) {
    let names = Arc::new(names.clone());
    let queries = found.into_iter().map(|(installed, found)| {
        let (access, names) = (access.clone(), names.clone());
        async move {
            let mut offer = match &found {
                Ok(offer) => AppOffer::clone(offer),
                Err(error) => unreadable(&installed, error),
            };
            // An APK with another package name than the phone's list is not queried.
            if offer.package == installed.package {
                query::complete(&*access, &mut offer, &names).await;
            }
            (installed, found, offer)
        }
    });
    each(queries.collect(), report).await;
}

/// Whether an app is worth showing. Most offer nothing. Android installed the app, so an APK that is damaged or
/// refused here was probably made so on purpose and is shown; one that adb may not read is not.
pub(crate) fn is_something(found: &ScannedOffer) -> bool {
    match found {
        Ok(offer) => !(offer.tools.is_empty() && offer.queries.is_empty() && offer.findings.is_empty()),
        Err(error) => !matches!(error, ApkError::Unreadable(_)),
    }
}

/// Whether a query of the app failed, so that a retry may help.
pub(crate) fn is_failing(offer: &AppOffer) -> bool {
    offer.findings.iter().any(|finding| rules::QUERY_FAILED.contains(&finding.rule))
}

fn unreadable(installed: &InstalledPackage, error: &ApkError) -> AppOffer {
    let message = format!("cannot read what the app offers: {error}");
    AppOffer {
        package: installed.package.clone(),
        version_name: String::new(),
        version_code: installed.version_code,
        certificate: None,
        instructions: None,
        tools: Vec::new(),
        queries: Vec::new(),
        findings: vec![finding::error(&rules::APK, message)],
    }
}

/// Runs all futures, a few at a time. The results are in the order of completion.
async fn side_by_side<T: Send + 'static>(work: Vec<impl Future<Output = T> + Send + 'static>) -> Vec<T> {
    let mut done = Vec::with_capacity(work.len());
    each(work, |one| done.push(one)).await;
    done
}

async fn each<T: Send + 'static>(work: Vec<impl Future<Output = T> + Send + 'static>, mut done: impl FnMut(T)) {
    let mut work = work.into_iter();
    let mut running: JoinSet<T> = work.by_ref().take(MAX_PARALLEL).collect();
    while let Some(ended) = running.join_next().await {
        // A future that panicked has no result; callers handle missing ones.
        if let Ok(one) = ended {
            done(one);
        }
        if let Some(next) = work.next() {
            running.spawn(next);
        }
    }
}
