//! What a call brought: shown, or saved to files.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sinew_api::CallResult;
use sinew_tool::Content;
use sinew_tool::outcome::ResourceBody;

use crate::error::{CliError, CliErrorKind};
use crate::terminal::bytes;

/// One content item, as it is shown.
pub enum ContentLine {
    Text(String),
    Other(String),
}

/// The longest text of a file that is shown, in bytes; two screens full.
const MAX_SHOWN_TEXT: usize = 4 << 10;

/// What to show of each content item. With a path to save to, binary data moves from the answer into files.
pub fn items(answer: &mut CallResult, save: Option<&Path>, stem: &str) -> Result<Vec<ContentLine>, CliError> {
    let (mut shown, mut saved) = (Vec::new(), 0);
    let target = save.map(SavePath::new);
    for item in &mut answer.content {
        let Some(content) = Content::from_json(item) else {
            let kind = item.get("type").and_then(Value::as_str).unwrap_or_default();
            shown.push(ContentLine::Other(format!("content of an unknown type: {kind}")));
            continue;
        };
        match (&content, data(&content)) {
            (Content::Text(text), _) => shown.push(ContentLine::Text(text.clone())),
            (Content::Resource { body: ResourceBody::Text(text), .. }, _)
                if target.is_none() && text.len() <= MAX_SHOWN_TEXT =>
            {
                shown.push(ContentLine::Text(text.clone()));
            }
            (_, Some(data)) => {
                let mime = mime_type(&content);
                let size = match &content {
                    Content::Image { size: Some((width, height)), .. } => format!(", {width} × {height}"),
                    _ => String::new(),
                };
                let mut line = format!("{mime}{size}, {}", bytes(data.len()));
                if let Some(target) = &target {
                    saved += 1;
                    let path = target.save(stem, extension(mime), saved, &data)?;
                    line.push_str(&format!(", saved to {}", path.display()));
                    if let SavePath::File(named) = target
                        && has_other_ending(named, extension(mime))
                    {
                        let ending = named.extension().unwrap_or_default().to_string_lossy();
                        line.push_str(&format!(": it is not a .{ending} file"));
                    }
                    strip(item, &path);
                } else {
                    line.push_str("; --save FILE saves it");
                }
                shown.push(ContentLine::Other(line));
            }
            (Content::Link(link), _) => shown.push(ContentLine::Other(link.uri.clone())),
            _ => shown.push(ContentLine::Other(item.to_string())),
        }
    }
    if shown.is_empty() {
        shown.extend(answer.structured.iter().map(|structured| ContentLine::Text(format!("{structured:#}"))));
    }
    Ok(shown)
}

/// What goes into a file.
fn data(content: &Content) -> Option<Vec<u8>> {
    match content {
        Content::Resource { body: ResourceBody::Text(text), .. } => Some(text.clone().into_bytes()),
        other => other.bytes(),
    }
}

fn mime_type(content: &Content) -> &str {
    match content {
        Content::Image { mime_type, .. } | Content::Audio { mime_type, .. } => mime_type,
        Content::Resource { mime_type: Some(mime_type), .. } => mime_type,
        _ => "application/octet-stream",
    }
}

/// Saves the report of a call that failed, which is in the details of the error, and says where it is.
pub fn save_report(failure: &mut CliError, save: &Path, stem: &str) -> Result<(), CliError> {
    let is_omitted = failure.details["omitted"].as_array().is_some_and(|names| names.contains(&json!("report")));
    if is_omitted {
        failure.message.push_str("\nthe report is too large to be passed on and was left out; run fewer steps at once");
    }
    let Some(Value::String(report)) = failure.details.get("report") else { return Ok(()) };
    let (report, extension) = match report.starts_with('{') {
        true => (report.clone().into_bytes(), "json"),
        false => {
            let body = ResourceBody::Blob(report.clone());
            let page = Content::Resource { uri: String::new(), mime_type: None, body };
            (data(&page).unwrap_or_default(), "html")
        }
    };
    let path = SavePath::new(save).save(stem, extension, 1, &report)?;
    failure.message.push_str(&format!("\nthe report is in {}", path.display()));
    failure.details["report"] = json!({"saved": path.display().to_string()});
    Ok(())
}

/// Puts the path where the data was.
fn strip(item: &mut Value, path: &Path) {
    let holder = if item.get("resource").is_some() { &mut item["resource"] } else { item };
    if let Some(holder) = holder.as_object_mut() {
        holder.retain(|member, _| !["data", "blob", "text"].contains(&member.as_str()));
        holder.insert("saved".to_owned(), json!(path.display().to_string()));
    }
}

/// Where binary content is written.
enum SavePath<'a> {
    /// A file that the caller named; it is replaced. Further content of the same answer gets numbers.
    File(&'a Path),
    /// A folder, in which nothing is replaced.
    Folder(&'a Path),
}

impl<'a> SavePath<'a> {
    /// A name with an ending is a file, unless there is a folder of that name.
    fn new(path: &'a Path) -> SavePath<'a> {
        let is_folder =
            path.is_dir() || path.extension().is_none() || path.as_os_str().to_string_lossy().ends_with('/');
        if is_folder { SavePath::Folder(path) } else { SavePath::File(path) }
    }

    fn save(&self, stem: &str, extension: &str, number: usize, data: &[u8]) -> Result<PathBuf, CliError> {
        let failed =
            |path: &Path, error| CliError::new(CliErrorKind::Io, format!("cannot write {}: {error}", path.display()));
        let folder = match self {
            SavePath::File(path) => path.parent().unwrap_or(Path::new("")),
            SavePath::Folder(folder) => folder,
        };
        if !folder.as_os_str().is_empty() {
            fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
        }
        if let SavePath::File(path) = self
            && has_other_ending(path, extension)
        {
            let path = path.with_extension(extension);
            let names = std::iter::once(path.clone()).chain((2..).map(|number| numbered(&path, number)));
            return save_new(names, data).map_err(|(path, error)| failed(&path, error));
        }
        if let SavePath::File(path) = self {
            let path = if number == 1 { path.to_path_buf() } else { numbered(path, number) };
            return fs::write(&path, data).map(|()| path.clone()).map_err(|error| failed(&path, error));
        }
        let names = (1..).map(|number| folder.join(format!("{stem}-{number}.{extension}")));
        save_new(names, data).map_err(|(path, error)| failed(&path, error))
    }
}

/// Writes the first of these files that does not exist yet.
fn save_new(names: impl Iterator<Item = PathBuf>, data: &[u8]) -> Result<PathBuf, (PathBuf, std::io::Error)> {
    for path in names {
        match fs::OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(mut file) => {
                return match std::io::Write::write_all(&mut file, data) {
                    Ok(()) => Ok(path),
                    Err(error) => Err((path, error)),
                };
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err((path, error)),
        }
    }
    Err((PathBuf::new(), std::io::ErrorKind::AlreadyExists.into()))
}

/// Whether a file is named as another kind of picture or sound than its content: programs believe the ending.
fn has_other_ending(path: &Path, extension: &str) -> bool {
    const MEDIA: [&str; 7] = ["jpg", "png", "webp", "gif", "wav", "mp3", "ogg"];
    let ending = path.extension().unwrap_or_default().to_string_lossy().to_lowercase().replace("jpeg", "jpg");
    MEDIA.contains(&extension) && MEDIA.contains(&ending.as_str()) && ending != extension
}

/// `shot.png`, `shot-2.png`, …
fn numbered(path: &Path, number: usize) -> PathBuf {
    let part = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
    path.with_file_name(format!("{}-{number}.{}", part(path.file_stem()), part(path.extension())))
}

fn extension(mime: &str) -> &'static str {
    match mime {
        "image/jpeg" => "jpg",
        "image/png" => "png",
        "image/webp" => "webp",
        "image/gif" => "gif",
        "audio/wav" | "audio/x-wav" => "wav",
        "audio/mpeg" => "mp3",
        "audio/ogg" => "ogg",
        "video/mp4" => "mp4",
        "text/html" => "html",
        "text/plain" => "txt",
        "application/json" => "json",
        _ => "bin",
    }
}

/// A name in plain characters; names come from devices and users, and only these reach the file system.
pub fn plain(text: &str) -> String {
    text.chars()
        .map(|character| if character.is_ascii_alphanumeric() || character == '-' { character } else { '_' })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binary_content_moves_into_files_that_are_never_written_over() {
        let folder = std::env::temp_dir().join(format!("sinew-call-{}", std::process::id()));
        let image = Content::image(b"abc", "image/png", Some((2, 1))).to_json();
        let mut answer = CallResult { content: vec![image.clone(), image], structured: None, more: Default::default() };
        items(&mut answer, Some(&folder), "b-photo").expect("saved");
        assert_eq!(fs::read(folder.join("b-photo-1.png")).expect("written"), b"abc");
        assert_eq!(fs::read(folder.join("b-photo-2.png")).expect("written"), b"abc");
        assert!(answer.content[1].get("data").is_none());
        assert!(answer.content[1]["saved"].as_str().unwrap_or_default().ends_with("b-photo-2.png"));
        fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn the_text_of_a_file_is_shown_where_it_is_short_and_not_saved() {
        let folder = tempfile::tempdir().expect("a folder");
        let shown = |text: String, save: Option<&Path>| {
            let body = ResourceBody::Text(text);
            let file =
                Content::Resource { uri: "file:///a".to_owned(), mime_type: Some("text/plain".to_owned()), body };
            let mut answer = CallResult { content: vec![file.to_json()], structured: None, more: Default::default() };
            match &items(&mut answer, save, "phone-read_file").expect("shown")[..] {
                [ContentLine::Text(text)] => text.clone(),
                [ContentLine::Other(line)] => format!("({line})"),
                _ => panic!("one line"),
            }
        };
        assert_eq!(shown("Grüße\n".to_owned(), None), "Grüße\n");
        assert!(shown("Grüße\n".to_owned(), Some(folder.path())).contains("phone-read_file-1.txt"));
        assert!(shown("x".repeat(MAX_SHOWN_TEXT + 1), None).ends_with("; --save FILE saves it)"));
    }

    #[test]
    fn a_video_has_the_ending_of_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let body = ResourceBody::Blob("AAAA".to_owned());
        let video = Content::Resource { uri: "a".to_owned(), mime_type: Some("video/mp4".to_owned()), body };
        let mut answer = CallResult { content: vec![video.to_json()], structured: None, more: Default::default() };
        items(&mut answer, Some(folder.path()), "phone-record_screen").expect("saved");
        assert!(folder.path().join("phone-record_screen-1.mp4").is_file());
    }

    #[test]
    fn a_report_that_was_left_out_is_not_missed_in_silence() {
        let mut failure = CliError::new(CliErrorKind::Io, "step 2 (expect) failed");
        failure.details = json!({"step": 2, "omitted": ["report"]});
        save_report(&mut failure, Path::new("r.html"), "phone-run_steps").expect("nothing to save");
        assert!(failure.message.contains("too large to be passed on"), "{failure}");
    }

    #[test]
    fn a_name_with_an_ending_is_a_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let image = Content::image(b"abc", "image/png", None).to_json();
        let mut answer = CallResult { content: vec![image.clone(), image], structured: None, more: Default::default() };
        let path = folder.path().join("new/shot.png");
        for _ in 0..2 {
            items(&mut answer.clone(), Some(&path), "b-photo").expect("saved");
        }
        items(&mut answer, Some(&path), "b-photo").expect("saved");
        assert_eq!(fs::read(&path).expect("a file"), b"abc");
        assert_eq!(fs::read_dir(folder.path().join("new")).expect("a folder").count(), 2, "shot.png and shot-2.png");
    }

    #[test]
    fn a_picture_never_gets_the_ending_of_another_kind() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("shot.jpg"), "mine").expect("written");
        let image = Content::image(b"abc", "image/jpeg", None).to_json();
        let mut answer = CallResult { content: vec![image], structured: None, more: Default::default() };
        let shown = items(&mut answer, Some(&folder.path().join("shot.png")), "b-photo").expect("saved");
        let [ContentLine::Other(line)] = &shown[..] else { panic!("one line") };
        assert!(line.ends_with("shot-2.jpg: it is not a .png file"), "{line}");
        assert_eq!(fs::read(folder.path().join("shot.jpg")).expect("a file"), b"mine", "nobody named this one");
        assert!(!folder.path().join("shot.png").exists());
        for fits in ["a.JPG", "a.jpeg", "a.txt"] {
            assert!(!has_other_ending(Path::new(fits), "jpg"), "{fits}");
        }
    }

    #[test]
    fn names_cannot_leave_the_folder() {
        assert_eq!(plain("../../etc/passwd"), "______etc_passwd");
        assert_eq!(plain("self.camera.take_photo"), "self_camera_take_photo");
    }
}
