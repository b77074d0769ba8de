//! Tests of what an option file says.

use super::*;

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
    // `my_print_defaults client` of MariaDB 10.11 and MySQL 8.0 says the same of each.
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
    for (text, telling) in [
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
        let said = complaint(text);
        assert!(said.contains(telling) && !said.contains("canary"), "{said}");
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
