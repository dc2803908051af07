//! The whole gateway: the real binary, on free ports and a state directory of its own.

#![allow(clippy::panic)]

mod access;
mod app;
mod apps;
mod backup;
mod bench;
mod boards;
mod brokers;
mod cluster;
mod commands;
mod config;
mod connect;
mod documents;
mod eighty_columns;
mod endpoint;
mod firmware;
mod gateway;
mod limits;
mod machine;
mod operator;
mod outside_board;
mod persistence;
mod phones;
mod pins;
mod provider;
mod qemu;
mod relay;
mod routine_suites;
mod routines;
mod servers;
mod spec;
mod start;
mod stdio;
mod terminal;
mod things;
mod tokens;
mod tool_pages;
mod upgrade;
mod ways_in;
mod workspace;
