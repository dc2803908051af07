//! Secrets that the configuration does not have itself: `KEY-file` names a file, or a credential of systemd.

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
        let credentials = credentials.map(PathBuf::from);
        let read = |table: &str, key: &str, secret: &mut Option<String>, file: &mut Option<PathBuf>| {
            let Some(path) = file.take() else { return Ok(()) };
            let setting = format!("{key}-file");
            let wrong = |why: String| ConfigProblem::at(format!("{table}.{setting}"), format!("`{setting}` {why}"));
            if secret.is_some() {
                return Err(wrong(format!("and `{key}` are two ways to say the same; keep one")));
            }
            *secret = Some(first_line(&path, credentials.as_deref()).map_err(wrong)?);
            Ok(())
        };
        if let Some(vision) = &mut self.boards.vision {
            read("boards.vision", "key", &mut vision.key, &mut vision.key_file)?;
        }
        read("relay", "token", &mut self.relay.token, &mut self.relay.token_file)?;
        for (index, endpoint) in self.endpoints.iter_mut().enumerate() {
            let mut url = Some(std::mem::take(&mut endpoint.url)).filter(|url| !url.is_empty());
            read(&format!("endpoints.{index}"), "url", &mut url, &mut endpoint.url_file)?;
            endpoint.url = url.unwrap_or_default();
        }
        for (index, broker) in self.brokers.iter_mut().enumerate() {
            read(&format!("brokers.{index}"), "password", &mut broker.password, &mut broker.password_file)?;
        }
        for (index, server) in self.servers.iter_mut().enumerate() {
            read(&format!("servers.{index}"), "token", &mut server.token, &mut server.token_file)?;
        }
        for (index, hook) in self.hooks.iter_mut().enumerate() {
            read(&format!("hooks.{index}"), "secret", &mut hook.secret, &mut hook.secret_file)?;
        }
        if let Some(cluster) = &mut self.cluster
            && let Some(file) = &mut cluster.credentials
        {
            *file = find(file, credentials.as_deref());
        }
        Ok(())
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
    fn an_error_has_the_line_of_its_setting() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("sinew.toml");
        std::fs::write(&file, "[[servers]]\nurl = 'http://a'\ntoken-file = 'none'\n").expect("written");
        let refused = GatewayConfig::load(&file).expect_err("no such file").message;
        assert!(refused.contains("sinew.toml:3: ") && refused.contains("`token-file` names"), "{refused}");
    }
}
