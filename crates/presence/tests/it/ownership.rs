//! Who holds a device, and who may act on it.

use sinew_presence::{Boot, NodeId, Owner, Presence, PresenceEvent, Refusal, Route, StoreId, Timing};
use sinew_tool::Reach;

use crate::small_cluster::{SmallCluster, X};

const ONE: Reach = Reach::OneLink;
const SEVERAL: Reach = Reach::SeveralGateways;

fn name(index: usize) -> NodeId {
    NodeId::parse(&format!("n{index}")).expect("a name")
}

fn join(cluster: &mut SmallCluster, node: usize, reach: Reach) {
    let now = cluster.now;
    cluster.nodes[node].join(now, X, reach, "a board");
    cluster.settle();
}

/// Where each node would send a call.
fn routes(cluster: &SmallCluster) -> Vec<Option<NodeId>> {
    let route = |node: &Presence<_>| match node.route(X) {
        Route::Here => Some(NodeId::parse("here").expect("a name")),
        Route::At(run, _) => Some(run.node),
        Route::Nowhere => None,
    };
    cluster.nodes.iter().map(route).collect()
}

#[test]
fn every_node_finds_a_device_at_the_node_it_joined() {
    let mut cluster = SmallCluster::new(3);
    join(&mut cluster, 0, ONE);
    assert_eq!(routes(&cluster), [NodeId::parse("here"), Some(name(0)), Some(name(0))]);
    let now = cluster.now;
    cluster.nodes[0].leave(now, X);
    cluster.settle();
    assert_eq!(routes(&cluster), [None, None, None]);
    assert_eq!(cluster.news[1].last(), Some(&PresenceEvent::Gone { device: X }));
}

#[test]
fn a_device_that_dials_another_node_is_taken_over_and_the_old_fence_is_refused() {
    let mut cluster = SmallCluster::new(3);
    join(&mut cluster, 0, ONE);
    let old = cluster.nodes[0].fence(X).expect("held");
    join(&mut cluster, 1, ONE);
    assert_eq!(routes(&cluster), [Some(name(1)), NodeId::parse("here"), Some(name(1))]);
    assert!(cluster.news[0].contains(&PresenceEvent::Evicted { device: X, by: name(1) }));
    assert_eq!(cluster.nodes[0].accept(cluster.now, X, old), Err(Refusal::Moved));
    assert_eq!(cluster.nodes[1].accept(cluster.now, X, old), Err(Refusal::Moved));
    let new = cluster.nodes[1].fence(X).expect("held");
    assert!(new > old);
    assert_eq!(cluster.nodes[1].accept(cluster.now, X, new), Ok(()));
}

#[test]
fn the_devices_of_a_silent_node_are_gone_with_one_write_and_come_back_with_it() {
    let mut cluster = SmallCluster::new(3);
    join(&mut cluster, 0, ONE);
    cluster.is_cut[0] = true;
    cluster.pass(14);
    assert_eq!(routes(&cluster)[2], Some(name(0)), "14 s of silence are not enough");
    cluster.pass(6);
    assert_eq!(routes(&cluster)[1..], [None, None]);
    // Still connected to its node, which goes on serving it.
    assert_eq!(cluster.nodes[0].may_act(cluster.now, X), Ok(()));
    cluster.is_cut[0] = false;
    cluster.pass(6);
    assert_eq!(routes(&cluster)[1..], [Some(name(0)), Some(name(0))]);
}

#[test]
fn a_device_that_two_nodes_reach_is_held_by_the_first_and_by_the_second_only_after_it_is_dead() {
    let mut cluster = SmallCluster::new(2);
    join(&mut cluster, 0, SEVERAL);
    join(&mut cluster, 1, SEVERAL);
    assert_eq!(cluster.nodes[1].may_act(cluster.now, X), Err(Refusal::Moved));
    assert!(cluster.news[1].contains(&PresenceEvent::Standby { device: X }));
    cluster.is_cut[0] = true;
    let mut acting = Vec::new();
    for _ in 0..25 {
        cluster.pass(1);
        let may = |node: usize| cluster.nodes[node].may_act(cluster.now, X).is_ok();
        acting.push((may(0), may(1)));
    }
    assert!(!acting.contains(&(true, true)), "{acting:?}");
    assert_eq!(acting.last(), Some(&(false, true)));
    // Back again, the first learns that it lost the device before it acts.
    cluster.is_cut[0] = false;
    cluster.pass(10);
    assert_eq!(routes(&cluster)[0], Some(name(1)));
    assert_eq!(cluster.nodes[0].may_act(cluster.now, X), Err(Refusal::Moved));
}

#[test]
fn a_claim_whose_answer_was_lost_is_found_and_not_made_twice() {
    let mut cluster = SmallCluster::new(2);
    cluster.loses_answer = true;
    let before = cluster.writes;
    join(&mut cluster, 0, ONE);
    assert_eq!(routes(&cluster), [NodeId::parse("here"), Some(name(0))]);
    assert_eq!(cluster.writes, before + 1);
}

#[test]
fn after_a_restart_the_entries_of_the_old_process_count_no_more() {
    let mut cluster = SmallCluster::new(2);
    join(&mut cluster, 0, ONE);
    let old = cluster.nodes[0].fence(X).expect("held");
    cluster.restart(0, 99);
    assert_eq!(routes(&cluster)[1], None);
    join(&mut cluster, 0, ONE);
    assert_eq!(routes(&cluster)[1], Some(name(0)));
    assert_ne!(cluster.nodes[0].fence(X), Some(old));
}

#[test]
fn a_node_whose_name_another_took_takes_no_further_part() {
    let mut cluster = SmallCluster::new(2);
    join(&mut cluster, 1, SEVERAL);
    // A second process under the name of node 1.
    let twin = Owner { node: name(1), boot: Boot(77) };
    cluster.nodes[0] = Presence::new(twin, Timing::default());
    let now = cluster.now;
    cluster.nodes[0].handle_store(now, StoreId(1));
    cluster.nodes[0].handle_synced(now);
    cluster.settle();
    cluster.pass(6);
    assert!(cluster.news[1].contains(&PresenceEvent::Deposed));
    assert!(!cluster.nodes[1].has_lease(cluster.now) && cluster.nodes[0].has_lease(cluster.now));
    assert_eq!(cluster.nodes[1].may_act(cluster.now, X), Err(Refusal::NoLease));
}

#[test]
fn a_store_that_lost_everything_is_told_again() {
    let mut cluster = SmallCluster::new(3);
    join(&mut cluster, 0, ONE);
    let old = cluster.nodes[0].fence(X).expect("held");
    cluster.lose_store();
    cluster.pass(2);
    assert_eq!(routes(&cluster), [NodeId::parse("here"), Some(name(0)), Some(name(0))]);
    assert_ne!(cluster.nodes[0].fence(X).map(|fence| fence.store), Some(old.store));
    assert_eq!(cluster.nodes[0].accept(cluster.now, X, old), Err(Refusal::Moved));
    assert!(!cluster.news[1].contains(&PresenceEvent::Gone { device: X }));
}

#[test]
fn a_device_that_moves_back_and_forth_is_reported_as_two_with_one_identity() {
    let mut cluster = SmallCluster::new(2);
    join(&mut cluster, 0, ONE);
    for round in 0..8 {
        join(&mut cluster, (round + 1) % 2, ONE);
        cluster.pass(1);
    }
    let twice = |event: &PresenceEvent<_>| matches!(event, PresenceEvent::IdentityTwice { .. });
    assert!(cluster.news.iter().flatten().any(twice), "{:?}", cluster.news);
    // It settles: one of the two is served.
    assert_eq!(routes(&cluster).iter().filter(|route| **route == NodeId::parse("here")).count(), 1);
}

#[test]
fn a_retired_node_gives_up_all_its_devices_with_one_write() {
    let mut cluster = SmallCluster::new(2);
    join(&mut cluster, 0, SEVERAL);
    join(&mut cluster, 1, SEVERAL);
    let before = cluster.writes;
    cluster.nodes[0].retire();
    cluster.settle();
    assert_eq!(cluster.writes, before + 2, "the end of the lease, and the claim of the other");
    assert_eq!(cluster.nodes[1].may_act(cluster.now, X), Ok(()));
}

/// Which nodes would act on the device, after each of some seconds.
fn acting(cluster: &mut SmallCluster, seconds: usize) -> Vec<Vec<usize>> {
    let acting = |cluster: &SmallCluster| {
        let may = |node: &usize| cluster.nodes[*node].may_act(cluster.now, X).is_ok();
        (0..cluster.nodes.len()).filter(may).collect()
    };
    let second = |_| {
        cluster.pass(1);
        acting(cluster)
    };
    (0..seconds).map(second).collect()
}

#[test]
fn a_claim_that_is_answered_after_its_node_lost_the_lease_holds_nothing() {
    let mut cluster = SmallCluster::new(2);
    cluster.answered_late = Some(0);
    cluster.is_behind[0] = true;
    join(&mut cluster, 0, SEVERAL);
    // The claim is written; its node is declared dead before it hears of that, and the other one takes the device.
    cluster.is_cut[0] = true;
    cluster.pass(20);
    join(&mut cluster, 1, SEVERAL);
    assert_eq!(acting(&mut cluster, 1), [vec![1]]);
    cluster.is_cut[0] = false;
    cluster.pass(6);
    assert!(cluster.nodes[0].has_lease(cluster.now), "it is back");
    cluster.answer_late();
    assert!(acting(&mut cluster, 20).iter().all(|acting| *acting == [1]), "the answer is about an older lease");
    cluster.is_behind[0] = false;
    assert!(acting(&mut cluster, 5).iter().all(|acting| *acting == [1]));
    assert_eq!(routes(&cluster)[0], Some(name(1)));
}

#[test]
fn a_claim_that_only_the_watch_brings_after_the_lease_was_lost_holds_nothing() {
    let mut cluster = SmallCluster::new(2);
    cluster.loses_answer = true;
    cluster.is_behind[0] = true;
    join(&mut cluster, 0, SEVERAL);
    cluster.is_cut[0] = true;
    cluster.pass(20);
    cluster.is_cut[0] = false;
    cluster.pass(6);
    // The watch brings the claim, and nothing yet of what followed.
    join(&mut cluster, 1, SEVERAL);
    cluster.is_behind[0] = false;
    assert!(acting(&mut cluster, 10).iter().all(|acting| acting.len() <= 1));
}

#[test]
fn a_node_whose_watch_is_behind_takes_nothing_from_one_that_is_back() {
    let mut cluster = SmallCluster::new(3);
    join(&mut cluster, 0, SEVERAL);
    cluster.is_cut[0] = true;
    cluster.pass(20);
    assert_eq!(routes(&cluster)[1..], [None, None]);
    // It comes back, which node 1 does not hear.
    cluster.is_behind[1] = true;
    cluster.is_cut[0] = false;
    cluster.pass(6);
    assert_eq!(acting(&mut cluster, 1), [vec![0]]);
    join(&mut cluster, 1, SEVERAL);
    assert!(acting(&mut cluster, 20).iter().all(|acting| *acting == [0]));
    assert!(cluster.news[1].contains(&PresenceEvent::Standby { device: X }));
}

#[test]
fn a_device_of_a_node_whose_record_is_gone_is_taken_once_that_is_proven() {
    let mut cluster = SmallCluster::new(2);
    join(&mut cluster, 0, SEVERAL);
    cluster.is_cut[0] = true;
    cluster.pass(20);
    // The store drops records of nodes after a while; a node that starts then has never heard of this one.
    cluster.drop_record(0);
    cluster.restart(1, 99);
    cluster.pass(20);
    join(&mut cluster, 1, SEVERAL);
    assert_eq!(acting(&mut cluster, 5).last(), Some(&vec![1]));
}

#[test]
fn a_node_that_could_not_declare_another_dead_gives_it_its_whole_time_once_it_renews() {
    let mut cluster = SmallCluster::new(2);
    join(&mut cluster, 0, SEVERAL);
    join(&mut cluster, 1, SEVERAL);
    // Node 1 is without the network for long, and asks the store again and again; the last of it is answered late.
    cluster.is_cut[1] = true;
    cluster.pass(16);
    cluster.verdict_late = Some(1);
    cluster.pass(4);
    cluster.verdict_late = None;
    cluster.is_cut[1] = false;
    cluster.pass(6);
    cluster.answer_late();
    for _ in 0..10 {
        assert!(cluster.nodes[0].may_act(cluster.now, X).is_ok(), "it renews all the time");
        assert_eq!(routes(&cluster)[1], Some(name(0)));
        cluster.pass(1);
    }
}

#[test]
fn a_device_that_comes_back_at_once_keeps_its_connection() {
    let mut cluster = SmallCluster::new(2);
    join(&mut cluster, 0, ONE);
    cluster.answered_late = Some(0);
    let now = cluster.now;
    cluster.nodes[0].leave(now, X);
    cluster.is_behind[0] = true;
    cluster.settle();
    cluster.nodes[0].join(now, X, ONE, "a board");
    cluster.settle();
    // Only now it hears that its entry was removed.
    cluster.answer_late();
    cluster.is_behind[0] = false;
    cluster.settle();
    let is_evicted = |event: &PresenceEvent<_>| matches!(event, PresenceEvent::Evicted { .. });
    assert!(!cluster.news[0].iter().any(is_evicted), "{:?}", cluster.news[0]);
    assert_eq!(routes(&cluster), [NodeId::parse("here"), Some(name(0))]);
}

#[test]
fn a_device_that_comes_back_while_its_entry_is_removed_is_acted_on_only_after_a_new_claim() {
    let mut cluster = SmallCluster::new(2);
    join(&mut cluster, 0, SEVERAL);
    join(&mut cluster, 1, SEVERAL);
    // Node 0 loses the device and finds it again. Its entry is removed, and it does not hear of that.
    cluster.is_behind[0] = true;
    cluster.answered_late = Some(0);
    let now = cluster.now;
    cluster.nodes[0].leave(now, X);
    cluster.settle();
    cluster.nodes[0].join(now, X, SEVERAL, "a board");
    assert!(acting(&mut cluster, 20).iter().all(|acting| *acting == [1]), "the other node took it");
    cluster.is_behind[0] = false;
    cluster.answer_late();
    assert!(acting(&mut cluster, 5).iter().all(|acting| *acting == [1]));
    assert_eq!(routes(&cluster), [Some(name(1)), NodeId::parse("here")]);
}

#[test]
fn an_entry_whose_removal_was_lost_is_claimed_again() {
    let mut cluster = SmallCluster::new(2);
    join(&mut cluster, 0, SEVERAL);
    let old = cluster.nodes[0].fence(X).expect("held");
    cluster.is_cut[0] = true;
    let now = cluster.now;
    cluster.nodes[0].leave(now, X);
    cluster.settle();
    cluster.nodes[0].join(now, X, SEVERAL, "a board");
    assert_eq!(cluster.nodes[0].may_act(now, X), Err(Refusal::Moved), "nobody knows whether it was removed");
    cluster.is_cut[0] = false;
    cluster.pass(3);
    assert_eq!(cluster.nodes[0].may_act(cluster.now, X), Ok(()));
    assert!(cluster.nodes[0].fence(X).expect("held") > old);
}
