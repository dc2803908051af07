//! Specifications as people write them: read, checked, printed and compared.

mod compare;
mod corpus;
mod hostile;
mod report;
mod rules;
mod standard;
mod variance;
