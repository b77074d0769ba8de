//! Packets of the server's protocol over a socket or TCP, and the rows of a question.
//!
//! The `mysql` crate's own connection walks through two buffers of 4 MB, more than the rest of the
//! probe together; this one keeps what one answer needs, and gives rows without copying them.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::server::login::Place;

/// A connection that is silent for so long is given up.  A server under duress has taken half
/// a minute for its status, and a second question beside the first would make that worse.
const PATIENCE: Duration = Duration::from_secs(120);
const CONNECT: Duration = Duration::from_secs(10);
const ROOM: usize = 32 * 1024;
/// No packet that we ask for comes near this.
const LONGEST: usize = 1024 * 1024;
const HEADER: usize = 4;

const QUIT: u8 = 1;
const QUERY: u8 = 3;
const OK: u8 = 0x00;
const NULL: u8 = 0xfb;
const EOF: u8 = 0xfe;
const ERROR: u8 = 0xff;
/// An `EOF` packet is shorter than a row that begins with the same byte.
const EOF_LIMIT: usize = 9;

/// Why there is no answer.
#[derive(Debug)]
pub enum Fault {
    /// The server refused; the connection is good.
    Refused(u16, String),
    /// The connection is not.
    Lost(String),
}

impl Fault {
    /// In words.
    pub fn words(self) -> String {
        match self {
            Self::Refused(code, message) => format!("error {code}: {message}"),
            Self::Lost(why) => why,
        }
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Lost(match error.kind() {
            ErrorKind::WouldBlock => format!("silent for {} s", PATIENCE.as_secs()),
            ErrorKind::UnexpectedEof => "the server closed the connection".to_owned(),
            _ => error.to_string(),
        })
    }
}

/// What is not the protocol.
pub fn nonsense() -> Fault {
    Fault::Lost("it does not answer as a server does".to_owned())
}

trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

/// A connection, packet by packet.
pub struct Wire {
    stream: Box<dyn Stream>,
    /// What came and was not yet given lies between `from` and `to`.
    buffer: Vec<u8>,
    from: usize,
    to: usize,
    out: Vec<u8>,
    sequence: u8,
}

impl Wire {
    /// Connects; nothing is sent yet.
    ///
    /// # Errors
    /// Nobody there.
    pub fn connect(place: &Place) -> io::Result<Self> {
        let stream: Box<dyn Stream> = match place {
            Place::Socket(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                stream.set_write_timeout(Some(PATIENCE))?;
                Box::new(stream)
            }
            Place::Tcp(host, port) => {
                let stream = dial(host, *port)?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                stream.set_write_timeout(Some(PATIENCE))?;
                Box::new(stream)
            }
        };
        Ok(Self::over(stream))
    }

    fn over(stream: Box<dyn Stream>) -> Self {
        Self {
            stream,
            buffer: vec![0; ROOM],
            from: 0,
            to: 0,
            out: Vec::new(),
            sequence: 0,
        }
    }

    /// Sends one packet that carries the conversation on.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn send(&mut self, payload: &[u8]) -> Result<(), Fault> {
        let length = u32::try_from(payload.len()).map_err(|_| nonsense())?;
        self.out.clear();
        self.out.extend_from_slice(&length.to_le_bytes()[..3]);
        self.out.push(self.sequence);
        self.out.extend_from_slice(payload);
        self.sequence = self.sequence.wrapping_add(1);
        Ok(self.stream.write_all(&self.out)?)
    }

    /// The next packet; never an empty one.
    ///
    /// # Errors
    /// The server's refusal, or the connection is lost.
    pub fn receive(&mut self) -> Result<&[u8], Fault> {
        self.fill(HEADER)?;
        let header = &self.buffer[self.from..self.from + HEADER];
        let length =
            usize::from(header[0]) | usize::from(header[1]) << 8 | usize::from(header[2]) << 16;
        if length == 0 || length > LONGEST {
            return Err(nonsense());
        }
        self.sequence = header[3].wrapping_add(1);
        self.fill(HEADER + length)?;
        let begin = self.from + HEADER;
        self.from = begin + length;
        let packet = &self.buffer[begin..self.from];
        match packet[0] {
            ERROR => Err(refusal(packet)),
            _ => Ok(packet),
        }
    }

    /// Gives the first `N` cells of each row of the answer; NULL is empty.
    ///
    /// # Errors
    /// The server's refusal, or the connection is lost.
    pub fn ask<const N: usize>(
        &mut self,
        question: &str,
        mut each: impl FnMut([&[u8]; N]),
    ) -> Result<(), Fault> {
        self.sequence = 0;
        self.send(&[&[QUERY], question.as_bytes()].concat())?;
        let first = self.receive()?;
        if first[0] == OK {
            return Ok(());
        }
        // A server that asks for a file of ours instead gets none.
        if first[0] == NULL {
            return Err(nonsense());
        }
        while !is_eof(self.receive()?) {} // the columns
        loop {
            let packet = self.receive()?;
            if is_eof(packet) {
                return Ok(());
            }
            each(cells(packet).ok_or_else(nonsense)?);
        }
    }

    /// Has at least `wanted` bytes that were not yet given.
    fn fill(&mut self, wanted: usize) -> io::Result<()> {
        if self.from == self.to {
            (self.from, self.to) = (0, 0);
        }
        if self.from + wanted > self.buffer.len() {
            self.buffer.copy_within(self.from..self.to, 0);
            (self.from, self.to) = (0, self.to - self.from);
            self.buffer.resize(self.buffer.len().max(wanted), 0);
        }
        while self.to - self.from < wanted {
            match self.stream.read(&mut self.buffer[self.to..]) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(more) => self.to += more,
                Err(error) if error.kind() == ErrorKind::Interrupted => (),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl Drop for Wire {
    /// Takes leave, so that the server counts no aborted client.
    fn drop(&mut self) {
        self.sequence = 0;
        let _ = self.send(&[QUIT]);
    }
}

fn dial(host: &str, port: u16) -> io::Result<TcpStream> {
    let mut last = io::Error::new(ErrorKind::NotFound, format!("{host}: no address"));
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn is_eof(packet: &[u8]) -> bool {
    packet[0] == EOF && packet.len() < EOF_LIMIT
}

/// The server's words: a code, perhaps a state, and text.
fn refusal(packet: &[u8]) -> Fault {
    let (Some(code), Some(rest)) = (packet.get(1..3), packet.get(3..)) else {
        return nonsense();
    };
    let state = if rest.first() == Some(&b'#') { 6 } else { 0 };
    let reply = rest.get(state..).unwrap_or_default();
    let code = u16::from_le_bytes([code[0], code[1]]);
    Fault::Refused(code, String::from_utf8_lossy(reply).into_owned())
}

fn cells<const N: usize>(mut packet: &[u8]) -> Option<[&[u8]; N]> {
    let mut cells = [&[][..]; N];
    for cell in &mut cells {
        let (first, rest) = packet.split_first()?;
        let (width, length) = match first {
            &NULL => (0, 0),
            0xfc => (2, number(rest.get(..2)?)),
            0xfd => (3, number(rest.get(..3)?)),
            0xfe => (8, number(rest.get(..8)?)),
            short => (0, usize::from(*short)),
        };
        let rest = &rest[width..];
        *cell = rest.get(..length)?;
        packet = &rest[length..];
    }
    Some(cells)
}

fn number(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .rev()
        .fold(0, |value, byte| value << 8 | usize::from(*byte))
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    // Tests of the packets, with the other end played byte by byte.
    /// A packet as a server sends it.
    fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(payload.len()).unwrap().to_le_bytes();
        [&length[..3], &[sequence], payload].concat()
    }

    fn cell(text: &[u8]) -> Vec<u8> {
        let length = u16::try_from(text.len()).unwrap().to_le_bytes();
        match text.len() {
            0..=250 => [&[length[0]][..], text].concat(),
            _ => [&[0xfc], &length[..], text].concat(),
        }
    }

    /// An answer of rows of two cells, in packets.
    fn answer(rows: &[(&[u8], &[u8])]) -> Vec<u8> {
        let mut out = packet(1, &[2]);
        out.extend(packet(2, b"\x03def name"));
        out.extend(packet(3, b"\x03def value"));
        out.extend(packet(4, &[EOF, 0, 0, 2, 0]));
        for (name, value) in rows {
            out.extend(packet(5, &[cell(name), cell(value)].concat()));
        }
        out.extend(packet(6, &[EOF, 0, 0, 2, 0]));
        out
    }

    type Rows = Vec<(Vec<u8>, Vec<u8>)>;

    /// Asks a server that answers `reply` in pieces of `size` bytes, then closes.
    fn asked(reply: Vec<u8>, size: usize) -> Result<Rows, Fault> {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let server = thread::spawn(move || {
            // Whoever closes before it was asked leaves the question nowhere to go.
            let mut question = vec![0; 4 + 1 + "SHOW".len()];
            if theirs.read_exact(&mut question).is_err() {
                return;
            }
            for piece in reply.chunks(size) {
                if theirs.write_all(piece).is_err() {
                    return;
                }
            }
        });
        let mut wire = Wire::over(Box::new(ours));
        let mut rows = Vec::new();
        let done = wire.ask("SHOW", |[name, value]: [&[u8]; 2]| {
            rows.push((name.to_vec(), value.to_vec()));
        });
        drop(wire);
        server.join().unwrap();
        done.map(|()| rows)
    }

    #[test]
    fn rows_are_the_same_however_they_arrive() {
        let long = vec![b'x'; 40_000]; // longer than the buffer
        let rows: Vec<(&[u8], &[u8])> = vec![
            (b"Uptime", b"5"),
            (b"Key", &long),
            (b"Empty", b""),
            (b"Middle", &long[..300]),
            (b"Last", b"1"),
        ];
        let reply = answer(&rows);
        for size in [1, 3, 7, 4096, 100_000] {
            let got = asked(reply.clone(), size).unwrap();
            let got: Vec<(&[u8], &[u8])> = got.iter().map(|row| (&row.0[..], &row.1[..])).collect();
            assert_eq!(got, rows, "in pieces of {size}");
        }
    }

    #[test]
    fn an_answer_without_rows_is_one_too() {
        assert_eq!(asked(packet(1, &[OK, 0, 0, 2, 0, 0, 0]), 2).unwrap(), []);
    }

    #[test]
    fn a_refusal_leaves_the_connection_and_carries_the_servers_words() {
        for reply in [
            &b"\xff\x15\x04#28000Access denied"[..],
            b"\xff\x15\x04Access denied",
        ] {
            match asked(packet(1, reply), 5) {
                Err(Fault::Refused(1045, words)) => assert_eq!(words, "Access denied"),
                other => panic!("{other:?}"),
            }
        }
        // Also among the rows.
        let mut reply = answer(&[(b"a", b"1")]);
        reply.truncate(reply.len() - 9);
        reply.extend(packet(6, b"\xff\x25\x05#70100Query interrupted"));
        assert!(matches!(asked(reply, 9), Err(Fault::Refused(1317, _))));
    }

    #[test]
    fn what_is_no_server_is_a_lost_connection() {
        let mut short_cell = answer(&[]);
        short_cell.truncate(short_cell.len() - 9);
        short_cell.extend(packet(5, b"\x09abc"));
        for reply in [
            b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
            vec![0; 64],
            vec![0xff; 64],
            packet(1, &[NULL]),                     // asks for a file of ours
            packet(1, &[ERROR, 1]),                 // a refusal cut short
            answer(&[(b"a", b"1")])[..30].to_vec(), // closes within the answer
            short_cell,
            Vec::new(),
        ] {
            assert!(
                matches!(asked(reply.clone(), 11), Err(Fault::Lost(_))),
                "{reply:?}"
            );
        }
    }
}
