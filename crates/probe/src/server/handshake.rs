//! Logging in: the plugins that need a password only, and never a password in the clear over TCP.

use mysql_common::constants::CapabilityFlags;
use mysql_common::crypto::encrypt;
use mysql_common::io::ParseBuf;
use mysql_common::packets::{AuthPlugin, HandshakePacket, HandshakeResponse};
use mysql_common::proto::MySerialize;
use mysql_common::scramble::{scramble_native, scramble_sha256};

use crate::server::login::{Login, Place};
use crate::server::wire::{nonsense, Fault, Wire};

const NATIVE: &[u8] = b"mysql_native_password";
const SHA2: &[u8] = b"caching_sha2_password";
const NONCE: usize = 20;
/// It stands for the collation: utf8mb4.
const VERSION: (u16, u16, u16) = (5, 6, 0);
const LARGEST_PACKET: u32 = 16 * 1024 * 1024 - 1;

const OK: u8 = 0x00;
const MORE: u8 = 0x01;
const SWITCH: u8 = 0xfe;
const KNOWN: u8 = 0x03;
const PROVE: u8 = 0x04;
const SEND_KEY: u8 = 0x02;

/// A way to log in, and what the server gave for it.
struct Method {
    plugin: Vec<u8>,
    nonce: Vec<u8>,
}

/// Greets the server and logs in; returns the connection's number.
///
/// # Errors
/// The server's refusal, a way to log in that we do not have, or the connection is lost.
pub fn greet(wire: &mut Wire, login: &Login) -> Result<u32, Fault> {
    let packet = wire.receive()?;
    let greeting: HandshakePacket = ParseBuf(packet).parse(()).map_err(|_| nonsense())?;
    let mut capabilities = CapabilityFlags::CLIENT_PROTOCOL_41
        | CapabilityFlags::CLIENT_SECURE_CONNECTION
        | CapabilityFlags::CLIENT_PLUGIN_AUTH
        | CapabilityFlags::CLIENT_CONNECT_ATTRS;
    if !greeting
        .capabilities()
        .contains(CapabilityFlags::CLIENT_PROTOCOL_41)
    {
        return Err(nonsense());
    }
    capabilities &= greeting.capabilities();
    // Without it a server of the other flavour would expect its own extensions.
    capabilities |= CapabilityFlags::CLIENT_LONG_PASSWORD;
    let number = greeting.connection_id();
    let offered = greeting.auth_plugin_name_ref().unwrap_or(NATIVE);
    // Whatever else it prefers, it will ask for what the account has.
    let method = Method {
        plugin: if offered == SHA2 { SHA2 } else { NATIVE }.to_vec(),
        nonce: greeting.nonce(),
    };
    let response = response(login, &method, capabilities)?;
    wire.send(&response)?;
    finish(wire, login, method)?;
    Ok(number)
}

fn response(
    login: &Login,
    method: &Method,
    capabilities: CapabilityFlags,
) -> Result<Vec<u8>, Fault> {
    let attributes = [("program_name".to_owned(), "mydyno-probe".to_owned())];
    let response = HandshakeResponse::new(
        Some(method.proof(&login.password)?),
        VERSION,
        Some(login.user.as_bytes()),
        None::<&[u8]>,
        Some(AuthPlugin::from_bytes(&method.plugin)),
        capabilities,
        capabilities
            .contains(CapabilityFlags::CLIENT_CONNECT_ATTRS)
            .then(|| attributes.into()),
        LARGEST_PACKET,
    );
    let mut packet = Vec::new();
    response.serialize(&mut packet);
    Ok(packet)
}

/// Follows the server until it is satisfied.
fn finish(wire: &mut Wire, login: &Login, mut method: Method) -> Result<(), Fault> {
    for _ in 0..4 {
        let packet = wire.receive()?.to_vec();
        match packet.as_slice() {
            [OK, ..] => return Ok(()),
            [MORE, KNOWN] => (),
            [MORE, PROVE] => prove(wire, login, &method)?,
            [SWITCH, asked @ ..] => {
                method = Method::asked(asked);
                wire.send(&method.proof(&login.password)?)?;
            }
            _ => return Err(nonsense()),
        }
    }
    Err(nonsense())
}

/// Gives the password itself, where the server has not seen the account since its start: over
/// the socket as it is, which nobody else reads, over TCP under the server's key.
fn prove(wire: &mut Wire, login: &Login, method: &Method) -> Result<(), Fault> {
    let mut password = [login.password.as_bytes(), &[0]].concat();
    if let Place::Socket(_) = login.place {
        return wire.send(&password);
    }
    wire.send(&[SEND_KEY])?;
    let key = match wire.receive()? {
        [MORE, key @ ..] if key.starts_with(b"-----BEGIN PUBLIC KEY-----") => key.to_vec(),
        _ => return Err(nonsense()),
    };
    for (byte, mask) in password.iter_mut().zip(method.nonce.iter().cycle()) {
        *byte ^= mask;
    }
    wire.send(&encrypt(&password, &key))
}

impl Method {
    /// What a server asks for instead: a name, then what it gives for it.
    fn asked(packet: &[u8]) -> Self {
        let mut parts = packet.splitn(2, |byte| *byte == 0);
        let plugin = parts.next().unwrap_or_default().to_vec();
        let nonce = parts.next().unwrap_or_default();
        let nonce = nonce.get(..NONCE).unwrap_or(nonce).to_vec();
        Self { plugin, nonce }
    }

    fn proof(&self, password: &str) -> Result<Vec<u8>, Fault> {
        let password = password.as_bytes();
        let proof = match self.plugin.as_slice() {
            NATIVE => scramble_native(&self.nonce, password).map(|proof| proof.to_vec()),
            SHA2 => scramble_sha256(&self.nonce, password).map(|proof| proof.to_vec()),
            other => {
                let name = String::from_utf8_lossy(other);
                return Err(Fault::Lost(format!(
                    "the account logs in by {name}, which the probe does not speak: use one with \
                     mysql_native_password or caching_sha2_password"
                )));
            }
        };
        Ok(proof.unwrap_or_default())
    }
}
