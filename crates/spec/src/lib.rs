//! The tool-specification document: read, judge, print, compare.
