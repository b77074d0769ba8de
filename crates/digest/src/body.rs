//! What stands where a statement should.

use memchr::memchr;

use super::behind::{header_starts, is_banner, Known};

/// Whether a body starts so that it can only be a statement.
#[inline]
pub(super) fn is_plain(body: &[u8]) -> bool {
    match body {
        [b'#', ..] | [_, b':', ..] => false,
        [b'/', next, ..] => *next == b'*',
        [b'm', ..] => !starts_as_banner(body),
        _ => true,
    }
}

fn starts_as_banner(body: &[u8]) -> bool {
    body.starts_with(b"mysqld") || body.starts_with(b"mariadbd")
}

/// Whether the next event, the server's banner or the end of the log stands there.
pub(super) fn is_missing(body: &[u8], last: bool) -> Known {
    match body {
        [] if last => Known::Yes,
        [] => Known::NotYet,
        // The log may end within the header's next line.
        [b'#', ..] if breaks_off(body) && !is_command(body) && !last => Known::NotYet,
        [b'#', ..] if breaks_off(body) && !is_command(body) => Known::Yes,
        [b'#', ..] => header_starts(body, last),
        _ => is_server_start(body, last),
    }
}

/// How much of a line is waited for.
const LINE: usize = 1024;

/// Whether no more is there than the start of a line.
pub(super) fn breaks_off(body: &[u8]) -> bool {
    body.len() < LINE && memchr(b'\n', body).is_none()
}

fn is_server_start(body: &[u8], last: bool) -> Known {
    let path = body[0] == b'/' || body.get(1) == Some(&b':');
    if !path && !starts_as_banner(body) {
        return Known::No;
    }
    let line = &body[..body.len().min(LINE)];
    match memchr(b'\n', line) {
        Some(newline) if is_banner(&line[..newline]) => Known::Yes,
        None if line.len() < LINE && !last => Known::NotYet,
        _ => Known::No,
    }
}

/// Whether an administrator command stands there, which has no statement.
pub(super) fn is_command(body: &[u8]) -> bool {
    body.starts_with(b"# administrator command: ")
}
