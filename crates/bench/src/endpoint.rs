//! The HTTP endpoint of a gateway in this process.

use std::io;
use std::net::SocketAddr;

use sinew_front::{Front, FrontSettings};
use sinew_gateway::Gateway;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::Error;
use crate::load::bench_error;

pub(crate) struct Endpoint {
    pub address: SocketAddr,
    shutdown: CancellationToken,
    serving: JoinHandle<io::Result<()>>,
}

impl Endpoint {
    pub(crate) async fn open(gateway: &Gateway) -> Result<Endpoint, Error> {
        let listener = TcpListener::bind("127.0.0.1:0").await.and_then(|bound| Ok((bound.local_addr()?, bound)));
        let (address, listener) = listener.map_err(|error| bench_error(format!("no free port: {error}")))?;
        let shutdown = CancellationToken::new();
        let front = Front::new(gateway.clone(), FrontSettings::default());
        let serving = tokio::spawn(sinew_front::http::run(listener, front, None, shutdown.clone()));
        Ok(Endpoint { address, shutdown, serving })
    }

    pub(crate) async fn close(self) -> Result<(), Error> {
        self.shutdown.cancel();
        let served = self.serving.await.map_err(|error| bench_error(format!("the endpoint died: {error}")))?;
        served.map_err(|error| bench_error(format!("the endpoint failed: {error}")))
    }
}
