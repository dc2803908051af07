//! People who sign in with a passphrase. Of a passphrase only its hash is kept.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use serde::{Deserialize, Serialize};
use sinew_api::{CreatedPerson, NewPerson, Person, PersonRole};
use sinew_gateway::private_files::write_private_synced;
use sinew_tool::text::clean_line;
use sinew_tool::{ErrorKind, ToolError, json};
use tokio::sync::Semaphore;

/// Hashes that are computed at once; each takes 19 MiB and some tens of milliseconds.
const MAX_HASHES: usize = 2;
/// People of one gateway. Each is checked by name, so this only keeps the file small.
const MAX_PEOPLE: usize = 1_000;
/// Characters of a passphrase that a person chooses. Guesses are limited to a few a minute.
const MIN_PASSPHRASE: usize = 12;
/// Bytes of a passphrase; a longer one only costs time.
const MAX_PASSPHRASE: usize = 1_024;
/// Characters of a name.
const MAX_NAME: usize = 64;

/// The people of a gateway, in a file that only its owner reads.
pub(crate) struct PeopleFile {
    path: PathBuf,
    people: Mutex<Vec<KnownPerson>>,
    hashing: Arc<Semaphore>,
    /// The hash that is checked for names that nobody has, so that they take as long as others.
    nobody: Mutex<Option<String>>,
}

#[derive(Clone, Serialize, Deserialize)]
struct KnownPerson {
    name: String,
    role: PersonRole,
    created: i64,
    hash: String,
}

#[derive(Default, Serialize, Deserialize)]
struct PeopleDocument {
    people: Vec<KnownPerson>,
}

impl PeopleFile {
    pub(crate) fn open(path: PathBuf) -> io::Result<PeopleFile> {
        let people = match std::fs::read(&path) {
            Ok(text) => serde_json::from_slice::<PeopleDocument>(&text)
                .map_err(|error| io::Error::other(format!("cannot read {}: {error}", path.display())))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => PeopleDocument::default(),
            Err(error) => return Err(io::Error::other(format!("cannot read {}: {error}", path.display()))),
        };
        let hashing = Arc::new(Semaphore::new(MAX_HASHES));
        Ok(PeopleFile { path, people: Mutex::new(people.people), hashing, nobody: Mutex::default() })
    }

    pub(crate) fn list(&self) -> Vec<Person> {
        self.people().iter().map(KnownPerson::view).collect()
    }

    /// Adds a person, or gives a new passphrase and role to one who is known.
    pub(crate) async fn add(&self, new: NewPerson) -> Result<CreatedPerson, ToolError> {
        let NewPerson { name, role, passphrase } = new;
        check_name(&name)?;
        let (passphrase, made) = match passphrase {
            Some(chosen) => {
                check_passphrase(&chosen)?;
                (chosen, None)
            }
            None => {
                let made = make_passphrase()?;
                (made.clone(), Some(made))
            }
        };
        let hash = self.hash(passphrase).await?;
        let person = KnownPerson { name, role, created: unix_ms(), hash };
        let about = person.view();
        let mut people = self.people();
        let mut changed = people.clone();
        changed.retain(|known| !known.is_called(&person.name));
        if changed.len() >= MAX_PEOPLE {
            let message = format!("a gateway has at most {MAX_PEOPLE} people; remove some first");
            return Err(ToolError::new(ErrorKind::Busy, message));
        }
        changed.push(person);
        changed.sort_by(|one, two| one.name.cmp(&two.name));
        self.write(&changed)?;
        *people = changed;
        Ok(CreatedPerson { about, passphrase: made })
    }

    pub(crate) fn remove(&self, name: &str) -> Result<Person, ToolError> {
        let mut people = self.people();
        let Some(place) = people.iter().position(|known| known.is_called(name)) else {
            let message = format!("nobody is called `{}`; `sinew people` lists those there are", clean_line(name, 64));
            return Err(ToolError::new(ErrorKind::UnknownResource, message));
        };
        let mut changed = people.clone();
        let removed = changed.remove(place);
        self.write(&changed)?;
        *people = changed;
        Ok(removed.view())
    }

    /// The person with this name and passphrase. It takes the same time for names that nobody has.
    pub(crate) async fn check(&self, name: &str, passphrase: &str) -> Option<Person> {
        if passphrase.len() > MAX_PASSPHRASE {
            return None;
        }
        let known = self.people().iter().find(|known| known.is_called(name)).cloned();
        let hash = match &known {
            Some(known) => known.hash.clone(),
            None => self.nobody().await?,
        };
        let passphrase = passphrase.to_owned();
        let permit = self.hashing.clone().acquire_owned().await.ok()?;
        let is_right = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let hash = PasswordHash::new(&hash).ok()?;
            Argon2::default().verify_password(passphrase.as_bytes(), &hash).ok()
        });
        is_right.await.ok().flatten()?;
        // The person may have been removed or changed meanwhile.
        let known = known?;
        self.people().iter().find(|one| one.hash == known.hash).map(KnownPerson::view)
    }

    async fn nobody(&self) -> Option<String> {
        let kept = self.nobody.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if kept.is_some() {
            return kept;
        }
        let made = self.hash(make_passphrase().ok()?).await.ok()?;
        Some(self.nobody.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(made).clone())
    }

    async fn hash(&self, passphrase: String) -> Result<String, ToolError> {
        let failed =
            |error: String| ToolError::new(ErrorKind::Internal, format!("cannot hash the passphrase: {error}"));
        let permit = self.hashing.clone().acquire_owned().await.map_err(|error| failed(error.to_string()))?;
        let hashing = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            Argon2::default().hash_password(passphrase.as_bytes()).map(|hash| hash.to_string())
        });
        hashing.await.map_err(|error| failed(error.to_string()))?.map_err(|error| failed(error.to_string()))
    }

    fn write(&self, people: &[KnownPerson]) -> Result<(), ToolError> {
        let text = json!({"people": people}).to_string();
        write_private_synced(&self.path, text.as_bytes()).map_err(|error| {
            let message = format!("cannot write {}: {error}; nothing was changed", self.path.display());
            ToolError::new(ErrorKind::Internal, message)
        })
    }

    fn people(&self) -> std::sync::MutexGuard<'_, Vec<KnownPerson>> {
        self.people.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KnownPerson {
    fn view(&self) -> Person {
        Person { name: self.name.clone(), role: self.role, created: self.created, more: Default::default() }
    }

    fn is_called(&self, name: &str) -> bool {
        self.name.to_lowercase() == name.to_lowercase()
    }
}

fn check_name(name: &str) -> Result<(), ToolError> {
    let is_fine = |one: char| one.is_ascii_alphanumeric() || "-_.".contains(one);
    if !name.is_empty() && name.len() <= MAX_NAME && name.chars().all(is_fine) {
        return Ok(());
    }
    let issue = format!("must have 1 to {MAX_NAME} letters, digits, `-`, `_` or `.`");
    Err(ToolError::new(ErrorKind::InvalidArguments, format!("`name` {issue}"))
        .with_details(json!({"parameter_name": "name", "issue": issue})))
}

fn check_passphrase(passphrase: &str) -> Result<(), ToolError> {
    if passphrase.chars().count() >= MIN_PASSPHRASE && passphrase.len() <= MAX_PASSPHRASE {
        return Ok(());
    }
    let issue = format!("must have at least {MIN_PASSPHRASE} characters and at most {MAX_PASSPHRASE} bytes");
    Err(ToolError::new(ErrorKind::InvalidArguments, format!("`passphrase` {issue}"))
        .with_details(json!({"parameter_name": "passphrase", "issue": issue})))
}

/// 99 random bits as four groups that can be typed.
fn make_passphrase() -> Result<String, ToolError> {
    // Without letters and digits that look alike.
    const LETTERS: &[u8; 31] = b"abcdefghjkmnpqrstuvwxyz23456789";
    let mut bytes = [0; 20];
    getrandom::fill(&mut bytes).map_err(|error| ToolError::new(ErrorKind::Internal, error.to_string()))?;
    let letter = |byte: &u8| char::from(LETTERS[usize::from(byte % 31)]);
    let groups: Vec<String> = bytes.chunks(5).map(|group| group.iter().map(letter).collect()).collect();
    Ok(groups.join("-"))
}

fn unix_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(name: &str, passphrase: Option<&str>) -> NewPerson {
        NewPerson { name: name.to_owned(), role: PersonRole::Viewer, passphrase: passphrase.map(str::to_owned) }
    }

    #[tokio::test]
    async fn people_are_kept_without_their_passphrases() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("people.json");
        let people = PeopleFile::open(path.clone()).expect("people");
        let made = people.add(new("ada", None)).await.expect("added").passphrase.expect("one was made");
        assert!(people.add(new("bob", Some("correct horse"))).await.expect("added").passphrase.is_none());
        let text = std::fs::read_to_string(&path).expect("a file");
        assert!(!text.contains(&made) && !text.contains("correct horse"), "{text}");

        let people = PeopleFile::open(path).expect("people");
        assert_eq!(people.check("Ada", &made).await.map(|person| person.name), Some("ada".to_owned()));
        for (name, passphrase) in [("ada", "wrong"), ("ada", ""), ("bob", &made), ("nobody", &made), ("", "")] {
            assert!(people.check(name, passphrase).await.is_none(), "{name}");
        }
        people.remove("ADA").expect("removed");
        assert!(people.check("ada", &made).await.is_none());
    }

    #[tokio::test]
    async fn names_and_passphrases_that_are_no_good_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let people = PeopleFile::open(folder.path().join("people.json")).expect("people");
        for name in ["", "a b", "<b>", "ä", &"a".repeat(65), "a/b", "person:x"] {
            assert!(people.add(new(name, None)).await.is_err(), "{name}");
        }
        for passphrase in ["", "short", &"x".repeat(2_000)] {
            assert!(people.add(new("ada", Some(passphrase))).await.is_err(), "{passphrase}");
        }
        assert!(people.list().is_empty());
    }
}
