//! HTTP as firmware speaks it: one request on one connection.

use std::io;
use std::time::Duration;

use sinew_runner::{GatewayAddress, RunError, Trust};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// As long as firmware waits for an answer.
const TIME: Duration = Duration::from_secs(60);
const ANSWER_BYTES: u64 = 1 << 20;

/// Where something is, and the path there.
pub(crate) struct HttpAddress {
    address: GatewayAddress,
    /// Path and query.
    path: String,
}

impl HttpAddress {
    pub(crate) fn parse(url: &str, trust: &Trust) -> Result<HttpAddress, RunError> {
        let address = GatewayAddress::parse(url, [("http", 80), ("https", 443)], trust)?;
        let rest = url.split_once("://").map_or("", |(_, rest)| rest);
        let path = rest.find('/').map_or("/", |start| &rest[start..]);
        Ok(HttpAddress { path: path.to_owned(), address })
    }

    /// Posts, and gives status and body of the answer. `chunks` as firmware sends them: each piece with its length.
    pub(crate) async fn post(
        &self,
        headers: &[(&str, &str)],
        body: WebRequestBody<'_>,
    ) -> Result<(u16, Vec<u8>), RunError> {
        let GatewayAddress { url, host, port, .. } = &self.address;
        let broken = |error: io::Error| RunError::Ended(format!("{url}: {error}"));
        let mut request = format!("POST {} HTTP/1.1\r\nHost: {host}:{port}\r\n", self.path);
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        let mut request = request.into_bytes();
        match body {
            WebRequestBody::Whole(body) => {
                request.extend(format!("Content-Length: {}\r\n\r\n", body.len()).bytes());
                request.extend(body);
            }
            WebRequestBody::Chunks(chunks) => {
                request.extend(b"Transfer-Encoding: chunked\r\n\r\n");
                for chunk in chunks.iter().filter(|chunk| !chunk.is_empty()) {
                    request.extend(format!("{:X}\r\n", chunk.len()).bytes());
                    request.extend(chunk);
                    request.extend(b"\r\n");
                }
                request.extend(b"0\r\n\r\n");
            }
        }
        let exchange = async {
            let mut stream = self.address.connect().await?;
            stream.write_all(&request).await.map_err(broken)?;
            stream.flush().await.map_err(broken)?;
            let mut answer = Vec::new();
            // Every answer of a gateway ends its connection; TLS may end without saying so.
            let read = stream.take(ANSWER_BYTES).read_to_end(&mut answer).await;
            match read {
                Err(error) if answer.is_empty() => Err(broken(error)),
                _ => Ok(answer),
            }
        };
        let answer = tokio::time::timeout(TIME, exchange)
            .await
            .unwrap_or_else(|_| Err(broken(io::ErrorKind::TimedOut.into())))?;
        split_answer(&answer).ok_or_else(|| RunError::Ended(format!("{url}: the answer is no HTTP")))
    }
}

/// How a body is sent.
pub(crate) enum WebRequestBody<'a> {
    Whole(&'a [u8]),
    Chunks(&'a [Vec<u8>]),
}

fn split_answer(answer: &[u8]) -> Option<(u16, Vec<u8>)> {
    let head_end = answer.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&answer[..head_end]).ok()?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some((status, answer[head_end + 4..].to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_apart() {
        let parse =
            |url: &str| HttpAddress::parse(url, &Trust::System).map(|it| (it.address.host, it.address.port, it.path));
        let parts = |host: &str, port: u16, path: &str| (host.to_owned(), port, path.to_owned());
        assert_eq!(parse("http://x:7301/a/?b=c").expect("fine"), parts("x", 7301, "/a/?b=c"));
        assert_eq!(parse("http://[::1]:9").expect("fine"), parts("::1", 9, "/"));
        assert_eq!(parse("http://[::1]/").expect("fine"), parts("::1", 80, "/"));
        for wrong in ["", "x", "ftp://x", "http://", "http://x:y/"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
