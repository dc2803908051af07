//! `sinew serve`: a gateway until it is stopped.

use sinew_compose::{Config, House, Overrides};

use crate::args::Serve;
use crate::failure::Failure;
use crate::show::{Show, print};
use crate::startpage::{self, Page};
use crate::stop::StopSignal;

pub async fn run(args: Serve, show: Show) -> Result<(), Failure> {
    let flags = Overrides::from(&args.doors);
    let settings = match &args.config {
        Some(path) => Config::settings(path, &flags)?,
        None => Config::default().with(&flags)?,
    };
    let mut stop = StopSignal::new()?;
    let house = House::open(settings).await?;
    let page = Page {
        title: format!("Sinew {} is running.", env!("CARGO_PKG_VERSION")),
        doors: house.doors.clone(),
        token: None,
        directory: house.directory.display().to_string(),
        elsewhere: house.elsewhere.clone(),
        boards_elsewhere: house.boards_elsewhere.clone(),
        in_the_clear: house.in_the_clear.clone(),
        devices: Vec::new(),
        program: startpage::program(),
        state_flag: None,
    };
    // One line, so that whoever started us can read it and go on.
    print(&if show.json() { format!("{}\n", page.to_json()) } else { page.to_text(show) });
    Ok(house.run(async || stop.wait().await).await?)
}
