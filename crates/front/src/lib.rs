//! The doors: stdio, Streamable HTTP, REST, administration.
