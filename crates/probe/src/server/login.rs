//! How to log in: the [client] section of an option file, read as the server's own clients do.

use std::fmt::{self, Display, Formatter};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const PORT: u16 = 3306;
/// Where distributions and the server's own builds put the socket.
const SOCKETS: [&str; 4] = [
    "/run/mysqld/mysqld.sock",
    "/var/lib/mysql/mysql.sock",
    "/var/run/mysqld/mysqld.sock",
    "/tmp/mysql.sock",
];
const NO_TLS: [&str; 3] = ["", "DISABLED", "PREFERRED"];

/// Where the server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    Socket(String),
    Tcp(String, u16),
}

impl Display for Place {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(path) => to.write_str(path),
            Self::Tcp(host, port) => write!(to, "{host}:{port}"),
        }
    }
}

/// Who asks, and where; it has no `Debug`, so that no message can hold the password.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    pub user: String,
    pub password: String,
    pub place: Place,
}

impl Login {
    /// Reads an option file; warns on stderr where others can read the password in it.
    ///
    /// # Errors
    /// The file cannot be read, or asks for what is not supported; the error never holds the
    /// password.
    pub fn read(path: &Path) -> Result<Self, String> {
        let wrong = |what: &str| format!("{}: {what}", path.display());
        let text = fs::read(path).map_err(|error| wrong(&error.to_string()))?;
        let text = String::from_utf8(text).map_err(|_| wrong("not UTF-8"))?;
        let login = parse(&text).map_err(|what| wrong(&what))?;
        let mode = fs::metadata(path).map_or(0, |data| data.permissions().mode());
        if mode & 0o077 != 0 && !login.password.is_empty() {
            eprintln!(
                "{}: others can reach the password in it: chmod 600",
                path.display()
            );
        }
        Ok(login)
    }
}

/// The settings of [client], later lines over earlier ones.
#[derive(Default)]
struct Client {
    user: String,
    password: String,
    socket: String,
    host: String,
    port: Option<u16>,
    protocol: String,
    tls: bool,
}

fn parse(text: &str) -> Result<Login, String> {
    let mut client = Client::default();
    let mut ours = false;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.starts_with('!') {
            return Err(format!(
                "line {}: included files are not followed: put [client] into this file",
                number + 1
            ));
        }
        if let Some(group) = line.strip_prefix('[') {
            ours = group.split(']').next().map(str::trim_end) == Some("client");
        } else if ours && !line.is_empty() && !line.starts_with(['#', ';']) {
            client
                .take(line)
                .map_err(|what| format!("line {}: {what}", number + 1))?;
        }
    }
    client.login()
}

impl Client {
    fn take(&mut self, line: &str) -> Result<(), String> {
        let line = without_comment(line);
        let (key, text) = line.split_once('=').unwrap_or((line, ""));
        let key = key.trim().replace('-', "_");
        let text = value(text);
        match key.as_str() {
            "user" => self.user = text,
            "password" => self.password = text,
            "socket" => self.socket = text,
            "host" => self.host = text,
            "protocol" => self.protocol = text.to_lowercase(),
            "port" => self.port = Some(text.parse().map_err(|_| "port is not a number")?),
            "ssl_mode" => self.tls = !NO_TLS.contains(&text.to_uppercase().as_str()),
            "ssl_verify_server_cert" | "ssl" => self.tls = !matches!(text.as_str(), "0" | "OFF"),
            _ => (),
        }
        Ok(())
    }

    fn login(self) -> Result<Login, String> {
        let place = self.place()?;
        if self.user.is_empty() {
            return Err("no user in [client]".to_owned());
        }
        if self.tls && matches!(place, Place::Tcp(..)) {
            return Err("it asks for TLS, which the probe does not speak: \
                        name the socket, or take TLS out of [client]"
                .to_owned());
        }
        Ok(Login {
            user: self.user,
            password: self.password,
            place,
        })
    }

    /// The clients' own rule: the socket, unless another host or TCP is named.
    fn place(&self) -> Result<Place, String> {
        let local = self.host.is_empty() || self.host == "localhost";
        let tcp = match self.protocol.as_str() {
            "" => !local,
            "tcp" => true,
            "socket" => false,
            other => return Err(format!("protocol {other}: only tcp and socket are known")),
        };
        if tcp {
            // A static program may have no way to look a name up, and needs none for this one.
            let host = if local { "127.0.0.1" } else { &self.host };
            return Ok(Place::Tcp(host.to_owned(), self.port.unwrap_or(PORT)));
        }
        let found = || SOCKETS.into_iter().find(|path| Path::new(path).exists());
        let socket = match self.socket.as_str() {
            "" => found().unwrap_or(SOCKETS[0]),
            named => named,
        };
        Ok(Place::Socket(socket.to_owned()))
    }
}

/// A line up to a # outside quotes.
fn without_comment(line: &str) -> &str {
    let (mut quote, mut escaped) = (None, false);
    for (at, byte) in line.bytes().enumerate() {
        if matches!(byte, b'\'' | b'"') && !escaped {
            match quote {
                None => quote = Some(byte),
                Some(open) if open == byte => quote = None,
                Some(_) => (),
            }
        }
        if quote.is_none() && byte == b'#' {
            return &line[..at];
        }
        escaped = quote.is_some() && byte == b'\\' && !escaped;
    }
    line
}

/// A value without its quotes, its escapes undone.
fn value(text: &str) -> String {
    let text = text.trim();
    let quoted = ['\'', '"'].into_iter().find_map(|quote| {
        text.strip_prefix(quote)
            .and_then(|rest| rest.strip_suffix(quote))
    });
    let mut out = String::new();
    let mut rest = quoted.unwrap_or(text).chars();
    while let Some(char) = rest.next() {
        match (char, rest.as_str().chars().next()) {
            ('\\', Some(next)) => {
                rest.next();
                match unescaped(next) {
                    Some(meant) => out.push(meant),
                    None => out.extend([char, next]),
                }
            }
            _ => out.push(char),
        }
    }
    out
}

fn unescaped(char: char) -> Option<char> {
    Some(match char {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'b' => '\u{8}',
        's' => ' ',
        '\\' | '"' | '\'' => char,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    // Tests of reading option files.
    fn password(line: &str) -> String {
        match parse(&format!("[client]\nuser=u\nsocket=/s\n{line}\n")) {
            Ok(login) => login.password,
            Err(what) => panic!("{line}: {what}"),
        }
    }

    fn place(lines: &str) -> Place {
        match parse(&format!("[client]\nuser=u\n{lines}\n")) {
            Ok(login) => login.place,
            Err(what) => panic!("{lines}: {what}"),
        }
    }

    fn complaint(text: &str) -> String {
        match parse(text) {
            Ok(_) => panic!("{text}: taken"),
            Err(what) => what,
        }
    }

    #[test]
    fn quotes_escapes_and_comments_are_the_servers() {
        // `my_print_defaults client` of MariaDB 10.11 and MySQL 8.0 prints the same for each.
        for (line, meant) in [
            ("password = a b ", "a b"),
            ("password=\"a#b\" # not this", "a#b"),
            ("password=a#b", "a"),
            ("password='a\"b'", "a\"b"),
            (r"password=a\sb\\c\td", "a b\\c\td"),
            (r"password=a\qb\", r"a\qb\"),
            ("password=\"a\\\"#b\"", "a\"#b"),
            ("password=a=b;c", "a=b;c"),
            ("password=", ""),
            ("password", ""),
            ("password='", "'"),
            ("password=one\npassword=two", "two"),
            ("; password=x\n# password=y", ""),
            ("[mysqld]\npassword=theirs", ""),
            ("[ client]\npassword=theirs", ""),
            ("password='a'#b'", "a"),
            (
                "[mysqld]\npassword=theirs\n[client ] # x\npassword=ours",
                "ours",
            ),
        ] {
            assert_eq!(password(line), meant, "{line}");
        }
    }

    #[test]
    fn the_place_is_the_one_a_client_would_take() {
        let socket = |path: &str| Place::Socket(path.to_owned());
        let tcp = |host: &str, port| Place::Tcp(host.to_owned(), port);
        assert_eq!(place("socket=/a b/s"), socket("/a b/s"));
        assert_eq!(place("socket=/s\nport=3307"), socket("/s"));
        assert_eq!(place("socket=/s\nhost=localhost"), socket("/s"));
        assert_eq!(place("socket=/s\nhost=10.0.0.7"), tcp("10.0.0.7", 3306));
        assert_eq!(place("host=::1\nport=3307"), tcp("::1", 3307));
        assert_eq!(place("protocol=TCP\nport=3307"), tcp("127.0.0.1", 3307));
        assert_eq!(place("host=db\nsocket=/s\nprotocol=socket"), socket("/s"));
    }

    #[test]
    fn what_cannot_be_done_is_refused_in_words_without_the_password() {
        for (text, message) in [
            ("[client]\nuser=u\npassword=canary\nport=x", "line 4: port"),
            ("[client]\npassword=canary\n", "no user"),
            (
                "[client]\nuser=u\npassword=canary\n!include /etc/my.cnf",
                "line 4: included",
            ),
            (
                "!includedir /etc/mysql\n[client]\npassword=canary",
                "line 1: included",
            ),
            (
                "[client]\nuser=u\npassword=canary\nprotocol=pipe",
                "protocol pipe",
            ),
            (
                "[client]\nuser=u\npassword=canary\nhost=db\nssl-mode=REQUIRED",
                "TLS",
            ),
            ("[client]\nuser=u\npassword=canary\nhost=db\nssl", "TLS"),
        ] {
            let error = complaint(text);
            assert!(
                error.contains(message) && !error.contains("canary"),
                "{error}"
            );
        }
        assert_eq!(
            place("host=db\nssl-mode=PREFERRED"),
            Place::Tcp("db".to_owned(), 3306)
        );
        assert_eq!(
            place("socket=/s\nssl-mode=REQUIRED"),
            Place::Socket("/s".to_owned())
        );
    }
}
