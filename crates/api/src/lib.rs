//! The HTTP interface of a gateway, typed once: the requests and answers of `/api/v1`, the table of all routes, and
//! who may use each.
//!
//! The gateway's endpoints answer with these types, the command line and the benchmark read them, and the OpenAPI
//! document is made of them. Nothing here opens a socket.

mod devices;
mod document;
mod health;
mod routes;
mod tokens;
mod tools;

use serde_json::{Map, Value};

pub use devices::{
    Accept, Approve, Board, Boards, Change, Changes, Device, Devices, Event, Events, Held, Labels, Rename,
};
pub use document::document;
pub use health::{Failure, Health, Problem, Ready, Reason};
pub use routes::{Access, Method, Operation, Parameter, ROUTES, Route, find};
pub use tokens::{Audit, MadeToken, NewToken, Record, Token, TokenRole, Tokens};
pub use tools::{Call, CallResult, Tool, Tools};

/// Fields that this version does not know; a newer gateway may send some.
pub type More = Map<String, Value>;
