//! Devices and hooks that the configuration names one by one. Their lists are taken from a changed file while the
//! gateway runs.

use std::io;
use std::sync::Arc;

use sinew_boards::Boards;
use sinew_boards::broker::Address;
use sinew_gateway::Gateway;
use sinew_serial::{PortTree, SerialPlan};
use sinew_servers::ServerPlan;
use sinew_things::ThingPlan;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::config::{ConfigProblem, GatewayConfig};
use crate::hooks::{self, HookPlan};
use crate::server_list::SharedServers;
use crate::tasks::TaskGroup;

/// The devices and hooks that a configuration names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FamilyPlans {
    pub servers: Vec<ServerPlan>,
    pub serial: Vec<SerialPlan>,
    pub things: Vec<ThingPlan>,
    pub hooks: Vec<HookPlan>,
}

impl FamilyPlans {
    pub fn of(config: &GatewayConfig) -> Result<FamilyPlans, ConfigProblem> {
        let at = |table: &'static str| {
            move |(index, why): (usize, String)| {
                ConfigProblem::at(format!("{table}.{index}"), format!("`{table}`: {why}"))
            }
        };
        let address = |(index, broker): (usize, &crate::brokers::BrokerConfig)| {
            broker.address().map_err(|error| ConfigProblem::at(format!("brokers.{index}"), error.message))
        };
        let brokers: Vec<Address> = match config.things.is_empty() {
            true => Vec::new(),
            false => config.brokers.iter().enumerate().map(address).collect::<Result<_, _>>()?,
        };
        Ok(FamilyPlans {
            servers: sinew_servers::plan(&config.servers).map_err(at("servers"))?,
            serial: sinew_serial::plan(&config.serial).map_err(at("serial"))?,
            things: sinew_things::plan(&config.things, &brokers).map_err(at("things"))?,
            hooks: hooks::plan(&config.hooks).map_err(at("hooks"))?,
        })
    }
}

/// The families while the gateway runs.
#[derive(Clone)]
pub struct RunningFamilies {
    servers: SharedServers,
    serial: Arc<watch::Sender<Vec<SerialPlan>>>,
    things: Arc<watch::Sender<Vec<ThingPlan>>>,
    hooks: Arc<watch::Sender<Vec<HookPlan>>>,
}

impl RunningFamilies {
    pub(crate) fn spawn(
        plans: FamilyPlans,
        (servers, followed): (SharedServers, watch::Receiver<Vec<ServerPlan>>),
        gateway: &Gateway,
        boards: &Boards,
        tasks: &mut TaskGroup,
    ) -> RunningFamilies {
        let (announce, known) = (gateway.announce(), Arc::new(gateway.clone()));
        let run = move |plan, end| sinew_servers::run(plan, known.clone(), announce.clone(), end);
        tasks.spawn(|shutdown| keep(followed, run, shutdown));
        let (boards, announce, known) = (boards.clone(), gateway.announce(), Arc::new(gateway.clone()));
        let run = move |plan, end| {
            sinew_serial::run(plan, PortTree::default(), boards.clone(), known.clone(), announce.clone(), end)
        };
        let serial = follow(plans.serial, run, tasks);
        let (announce, known) = (gateway.announce(), Arc::new(gateway.clone()));
        let run = move |plan, end| sinew_things::run(plan, known.clone(), announce.clone(), end);
        let things = follow(plans.things, run, tasks);
        let gateway = gateway.clone();
        let hooks = follow(plans.hooks, move |plan, end| hooks::run(plan, gateway.clone(), end), tasks);
        RunningFamilies { servers, serial, things, hooks }
    }

    /// Takes further devices.
    pub fn add(&self, plans: FamilyPlans) {
        self.servers.add_configured(plans.servers);
        self.serial.send_modify(|lines| lines.extend(plans.serial));
        self.things.send_modify(|things| things.extend(plans.things));
        self.hooks.send_modify(|hooks| hooks.extend(plans.hooks));
    }

    /// Takes other devices; those that did not change stay connected.
    pub fn set(&self, plans: FamilyPlans) {
        self.servers.set_configured(plans.servers);
        self.serial.send_replace(plans.serial);
        self.things.send_replace(plans.things);
        self.hooks.send_replace(plans.hooks);
    }
}

/// Keeps one task for each plan, and takes another list while running.
fn follow<P, F>(
    plans: Vec<P>,
    run: impl Fn(P, CancellationToken) -> F + Send + 'static,
    tasks: &mut TaskGroup,
) -> Arc<watch::Sender<Vec<P>>>
where
    P: Clone + PartialEq + Send + Sync + 'static,
    F: Future<Output = io::Result<()>> + Send + 'static,
{
    let (sender, receiver) = watch::channel(plans);
    tasks.spawn(|shutdown| keep(receiver, run, shutdown));
    Arc::new(sender)
}

async fn keep<P, F>(
    mut plans: watch::Receiver<Vec<P>>,
    run: impl Fn(P, CancellationToken) -> F,
    shutdown: CancellationToken,
) -> io::Result<()>
where
    P: Clone + PartialEq,
    F: Future<Output = io::Result<()>> + Send + 'static,
{
    let mut running: Vec<RunningDevice<P>> = Vec::new();
    while !shutdown.is_cancelled() {
        let current = plans.borrow_and_update().clone();
        for gone in running.extract_if(.., |device| !current.contains(&device.plan)) {
            gone.stop().await;
        }
        for plan in current {
            if running.iter().all(|device| device.plan != plan) {
                let end = shutdown.child_token();
                let task = tokio::spawn(run(plan.clone(), end.clone()));
                running.push(RunningDevice { plan, end, task });
            }
        }
        tokio::select! {
            () = shutdown.cancelled() => {}
            changed = plans.changed() => {
                if changed.is_err() {
                    // Nobody changes the list any more.
                    shutdown.cancelled().await;
                }
            }
        }
    }
    for device in running {
        device.stop().await;
    }
    Ok(())
}

struct RunningDevice<P> {
    plan: P,
    end: CancellationToken,
    task: JoinHandle<io::Result<()>>,
}

impl<P> RunningDevice<P> {
    async fn stop(self) {
        self.end.cancel();
        match self.task.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!("a device of the configuration ended: {error}"),
            Err(error) => tracing::error!("the task of a device of the configuration failed: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn a_changed_list_ends_and_starts_only_what_it_changes() {
        let (sender, mut events) = mpsc::unbounded_channel();
        let run = move |plan: &'static str, end: CancellationToken| {
            let sender = sender.clone();
            async move {
                sender.send(format!("{plan} starts")).map_err(io::Error::other)?;
                end.cancelled().await;
                sender.send(format!("{plan} ends")).map_err(io::Error::other)
            }
        };
        let mut tasks = TaskGroup::default();
        let plans = follow(vec!["a", "b"], run, &mut tasks);
        let mut next = async || events.recv().await.expect("an event");
        let mut first = [next().await, next().await];
        first.sort();
        assert_eq!(first, ["a starts", "b starts"]);
        plans.send_replace(vec!["b", "c"]);
        assert_eq!([next().await, next().await], ["a ends", "c starts"]);
        plans.send_replace(vec!["b", "c"]);
        tasks.stop().await;
        let mut last = [next().await, next().await];
        last.sort();
        assert_eq!(last, ["b ends", "c ends"]);
    }
}
