//! What a board needs of its heap. A binary of its own, because the allocator counts for the whole process.
//!
//! Pointers have 64 bits here and 32 on a microcontroller, so a board needs less than what is counted.

use sinew_wire::device::{Board, Property, Reply, ToolSpec};

#[global_allocator]
static HEAP: dhat::Alloc = dhat::Alloc;

const CALL: &str = r#"{"type":"mcp","payload":{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"get"}}}"#;
const LIST: &str = r#"{"type":"mcp","payload":{"jsonrpc":"2.0","id":7,"method":"tools/list"}}"#;

/// What handling a text takes at its peak beyond what the board held before, the reply of the tool included, and how
/// long the answer is.
fn peak(board: &mut Board, request: &str) -> (usize, usize) {
    let profiler = dhat::Profiler::builder().testing().build();
    let answer = board.handle_text(request).expect("a request gets an answer");
    let peak = dhat::HeapStats::get().max_bytes;
    drop(profiler);
    (peak, answer.len())
}

fn answering(reply: impl Fn() -> Reply + Send + 'static) -> Board {
    let mut board = Board::new("small", "1.0.0").tool(ToolSpec::new("get", "Get it"), move |_| Ok(reply()));
    board.handle_text(r#"{"type":"hello","transport":"websocket","session_id":"0123456789"}"#);
    board
}

/// Fifty tools as firmware has them: literals, two properties each.
fn fifty_tools() -> Board {
    const NAMES: [&str; 50] = {
        let mut names = ["self.tool.a"; 50];
        let mut index = 0;
        while index < names.len() {
            names[index] = "self.tool.abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz".split_at(11 + index).0;
            index += 1;
        }
        names
    };
    NAMES.into_iter().fold(Board::new("large", "1.0.0"), |board, name| {
        let spec = ToolSpec::new(name, "Set the brightness of one of the lamps, and say how fast it changes there.")
            .with(Property::integer("brightness", 0..=100).describe("in percent"))
            .with(Property::text_or("speed", "normal").describe("`normal` or `slow`"));
        board.tool(spec, |_| Ok(true.into()))
    })
}

#[test]
fn a_board_gets_by_with_little_memory() {
    for size in [100, 8_000, 20_000, 60_000] {
        let replies: [(&str, Board); 3] = [
            ("text", answering(move || Reply::from("x".repeat(size)))),
            ("quotes", answering(move || Reply::from("\"".repeat(size)))),
            ("jpeg", answering(move || Reply::jpeg(vec![0xff; size]))),
        ];
        for (what, mut board) in replies {
            let (peak, sent) = peak(&mut board, CALL);
            assert!(sent > size, "{what}");
            assert!(peak <= sent * 3 / 2 + 4096, "{what}: {peak} bytes of heap for a message of {sent}");
        }
    }

    let profiler = dhat::Profiler::builder().testing().build();
    let mut board = fifty_tools();
    let held = dhat::HeapStats::get().curr_bytes;
    drop(profiler);
    assert!(held <= 16 * 1024, "50 tools hold {held} bytes");

    let (peak, sent) = peak(&mut board, LIST);
    assert!(sent > 7_000, "a full page has {sent} bytes");
    assert!(peak <= sent * 3 / 2 + 4096, "{peak} bytes of heap for a page of {sent}");
}
