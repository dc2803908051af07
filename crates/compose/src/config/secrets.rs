//! Secrets that the configuration does not have itself: `KEY-file` names a file, or a credential of systemd.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::GatewayConfig;
use super::file::ConfigProblem;

/// 64 KiB: longer than any token; its first line is the secret.
const MAX_SECRET: u64 = 64 << 10;

/// Where systemd puts what a unit has with `LoadCredential=` and `SetCredential=`.
const CREDENTIALS: &str = "CREDENTIALS_DIRECTORY";

impl GatewayConfig {
    /// Reads the files of secrets, and puts what they say where a secret of the configuration itself would be.
    pub(super) fn read_secrets(&mut self) -> Result<(), ConfigProblem> {
        self.read_secrets_with(std::env::var_os(CREDENTIALS))
    }

    fn read_secrets_with(&mut self, credentials: Option<OsString>) -> Result<(), ConfigProblem> {
        let mut reader =
            SecretReader { credentials: credentials.map(PathBuf::from), files: Vec::new(), in_file: false };
        if let Some(vision) = &mut self.boards.vision {
            reader.read("boards.vision", "key", &mut vision.key, &mut vision.key_file)?;
        }
        reader.read("relay", "token", &mut self.relay.token, &mut self.relay.token_file)?;
        for (index, endpoint) in self.endpoints.iter_mut().enumerate() {
            let mut url = Some(std::mem::take(&mut endpoint.url)).filter(|url| !url.is_empty());
            reader.read(&format!("endpoints.{index}"), "url", &mut url, &mut endpoint.url_file)?;
            endpoint.url = url.unwrap_or_default();
        }
        for (index, broker) in self.brokers.iter_mut().enumerate() {
            reader.read(&format!("brokers.{index}"), "password", &mut broker.password, &mut broker.password_file)?;
        }
        for (index, server) in self.servers.iter_mut().enumerate() {
            let table = format!("servers.{index}");
            reader.read(&table, "token", &mut server.token, &mut server.token_file)?;
            reader.read_headers(&table, &mut server.headers, &mut server.header_files)?;
        }
        for (index, thing) in self.things.iter_mut().enumerate() {
            for (number, tool) in thing.tools.iter_mut().enumerate() {
                let Some(http) = &mut tool.http else { continue };
                let table = format!("things.{index}.tools.{number}.http");
                reader.read_headers(&table, &mut http.headers, &mut http.header_files)?;
            }
        }
        for (index, hook) in self.hooks.iter_mut().enumerate() {
            reader.read(&format!("hooks.{index}"), "secret", &mut hook.secret, &mut hook.secret_file)?;
        }
        // These are read by those who use them.
        let nats = self.cluster.iter_mut().filter_map(|cluster| cluster.credentials.as_mut());
        self.tls_key.iter_mut().chain(nats).for_each(|file| reader.find(file));
        self.secret_files = reader.files;
        self.secret_files.extend(self.file.clone().filter(|_| reader.in_file));
        Ok(())
    }
}

struct SecretReader {
    /// Where systemd puts credentials.
    credentials: Option<PathBuf>,
    /// The files that were named.
    files: Vec<PathBuf>,
    /// Whether the configuration has a secret itself.
    in_file: bool,
}

impl SecretReader {
    /// Puts what the file says where the secret would be.
    fn read(
        &mut self,
        table: &str,
        key: &str,
        secret: &mut Option<String>,
        file: &mut Option<PathBuf>,
    ) -> Result<(), ConfigProblem> {
        self.in_file |= secret.is_some();
        let Some(path) = file.take() else { return Ok(()) };
        let setting = format!("{key}-file");
        let wrong = |why: String| ConfigProblem::at(format!("{table}.{setting}"), format!("`{setting}` {why}"));
        if secret.is_some() {
            return Err(wrong(format!("and `{key}` are two ways to say the same; keep one")));
        }
        *secret = Some(self.first_line(path).map_err(wrong)?);
        Ok(())
    }

    /// The same for the values of headers.
    fn read_headers(
        &mut self,
        table: &str,
        headers: &mut BTreeMap<String, String>,
        files: &mut BTreeMap<String, PathBuf>,
    ) -> Result<(), ConfigProblem> {
        for (name, path) in std::mem::take(files) {
            let key = format!("{table}.header-files.{name}");
            let wrong = |why: String| ConfigProblem::at(&key, format!("`{name}` in `header-files` {why}"));
            if headers.keys().any(|known| known.eq_ignore_ascii_case(&name)) {
                return Err(wrong("is in `headers` too; keep one".to_owned()));
            }
            let value = self.first_line(path).map_err(wrong)?;
            if value.contains("${") {
                return Err(wrong("names a file with `${` in it, which would stand for an argument".to_owned()));
            }
            headers.insert(name, value);
        }
        Ok(())
    }

    /// Where a file is that is read later.
    fn find(&mut self, file: &mut PathBuf) {
        *file = find(file, self.credentials.as_deref());
        self.files.push(file.clone());
    }

    fn first_line(&mut self, mut path: PathBuf) -> Result<String, String> {
        let line = first_line(&path, self.credentials.as_deref())?;
        self.find(&mut path);
        Ok(line)
    }
}

/// The file, or the credential of its name where there is no such file.
fn find(path: &Path, credentials: Option<&Path>) -> PathBuf {
    let credential = credentials.and_then(|folder| Some(folder.join(path.file_name()?)));
    match credential {
        Some(credential) if !path.exists() && credential.exists() => credential,
        _ => path.to_owned(),
    }
}

fn first_line(path: &Path, credentials: Option<&Path>) -> Result<String, String> {
    let found = find(path, credentials);
    let mut text = String::new();
    let read = std::fs::File::open(&found).and_then(|file| file.take(MAX_SECRET).read_to_string(&mut text));
    read.map_err(|error| match credentials {
        Some(folder) if error.kind() == std::io::ErrorKind::NotFound => {
            format!("names {}, which is not there; nor is it a credential in {}", path.display(), folder.display())
        }
        _ if error.kind() == std::io::ErrorKind::NotFound => format!(
            "names {0}, which is not there; write the secret on its first line, for the gateway's user alone: `install -m 600 /dev/null {0}`",
            path.display()
        ),
        _ => format!("names {}, which cannot be read: {error}", found.display()),
    })?;
    match text.lines().next().map(str::trim).filter(|line| !line.is_empty()) {
        Some(line) => Ok(line.to_owned()),
        None => Err(format!("names {}, whose first line is empty", found.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every table that can have a secret, with the key for the secret itself.
    const TABLES: &[(&str, &str)] = &[
        ("[boards.vision]\nurl = 'http://127.0.0.1:1/'\nmodel = 'm'\n", "key"),
        ("[relay]\nurl = 'ws://127.0.0.1:8000/xiaozhi/v1/'\n", "token"),
        ("[[endpoints]]\n", "url"),
        ("[[brokers]]\nurl = 'mqtt://a'\nusername = 'u'\n", "password"),
        ("[[servers]]\nurl = 'http://a'\n", "token"),
        ("[[hooks]]\nname = 'h'\nevent = 'e'\nurl = 'http://127.0.0.1:1/'\n", "secret"),
    ];

    fn secret_of(config: &GatewayConfig) -> Option<String> {
        let endpoint = config.endpoints.first().map(|endpoint| endpoint.url.clone()).filter(|url| !url.is_empty());
        (config.boards.vision.as_ref().and_then(|vision| vision.key.clone()))
            .or_else(|| config.relay.token.clone())
            .or(endpoint)
            .or_else(|| config.brokers.first()?.password.clone())
            .or_else(|| config.servers.first()?.token.clone())
            .or_else(|| config.hooks.first()?.secret.clone())
    }

    #[test]
    fn every_secret_can_be_in_a_file_or_a_credential() {
        let folder = tempfile::tempdir().expect("a folder");
        let credentials = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("own"), "wss://a.example/?token=1\nmore\n").expect("written");
        std::fs::write(credentials.path().join("theirs"), "wss://b.example/?token=2\n").expect("written");
        std::fs::write(folder.path().join("empty"), "\nsecond\n").expect("written");
        for (table, key) in TABLES {
            let read = |file: &str, more: &str| {
                let text = format!("{table}{key}-file = '{}'\n{more}", folder.path().join(file).display());
                let mut config = GatewayConfig::parse(&text).expect("a configuration");
                let read = config.read_secrets_with(Some(credentials.path().into()));
                read.map(|()| secret_of(&config)).map_err(|problem| problem.message)
            };
            assert_eq!(read("own", ""), Ok(Some("wss://a.example/?token=1".to_owned())), "{table}");
            assert_eq!(read("theirs", ""), Ok(Some("wss://b.example/?token=2".to_owned())), "{table}");
            for (file, more, why) in [
                ("nothing", String::new(), "nor is it a credential"),
                ("empty", String::new(), "first line is empty"),
                ("own", format!("{key} = 'wss://c'\n"), "two ways to say the same"),
            ] {
                let refused = read(file, &more).expect_err(why);
                assert!(refused.contains(why) && refused.contains(&format!("`{key}-file`")), "{table}: {refused}");
            }
        }
    }

    #[test]
    fn headers_can_be_in_files_and_the_files_of_all_secrets_are_known() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        for (name, text) in [("key", "k-1\n"), ("nats.creds", "c"), ("argument", "a${b}\n")] {
            std::fs::write(path(name), text).expect("written");
        }
        let load = |text: &str| {
            std::fs::write(path("sinew.toml"), text).expect("written");
            GatewayConfig::load(&path("sinew.toml")).map_err(|error| error.message)
        };
        let thing = "[[things]]\nname = 't'\n[[things.tools]]\nname = 'x'\n";
        let http = "http = { url = 'http://a/', header-files = { X-Key = 'key' } }\n";
        let servers = "[[servers]]\nurl = 'http://a'\n[servers.header-files]\nX-Key = 'key'\n";
        let config = load(&format!("{thing}{http}{servers}")).expect("a configuration");
        let headers = [&config.servers[0].headers, &config.things[0].tools[0].http.as_ref().expect("http").headers];
        assert!(headers.iter().all(|headers| headers.get("X-Key").is_some_and(|value| value == "k-1")), "{headers:?}");
        assert_eq!(config.secret_files, [path("key"), path("key")]);
        for (text, line, why) in [
            (servers.replace("'key'", "'none'"), 4, "`X-Key` in `header-files` names"),
            (servers.replace("'key'", "'argument'"), 4, "would stand for an argument"),
            (servers.replace("[servers.header", "headers = { x-key = 'k' }\n[servers.header"), 5, "keep one"),
        ] {
            let refused = load(&text).expect_err(why);
            assert!(refused.contains(&format!("sinew.toml:{line}: ")) && refused.contains(why), "{refused}");
        }
        let plain = load("[[servers]]\nurl = 'http://a'\ntoken = 't'\n").expect("a configuration");
        assert_eq!(plain.secret_files, [path("sinew.toml")]);
    }

    #[test]
    fn an_error_has_the_line_of_its_setting() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("sinew.toml");
        std::fs::write(&file, "[[servers]]\nurl = 'http://a'\ntoken-file = 'none'\n").expect("written");
        let refused = GatewayConfig::load(&file).expect_err("no such file").message;
        assert!(refused.contains("sinew.toml:3: ") && refused.contains("`token-file` names"), "{refused}");
        assert!(refused.contains("install -m 600"), "{refused}");
    }
}
