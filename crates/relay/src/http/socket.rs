//! Settings of an accepted socket.

use tokio::net::TcpStream;

/// Small frames do not wait for the acknowledgement of the one before. And the kernel holds little unsent: a big buffer
/// swallows megabytes at once and then stands still for longer than `TRANSFER_WINDOW`, so that a slow link looks dead. What
/// is on its way is not bounded, so nothing becomes slower. Only Linux bounds this; other systems keep their buffers.
pub(super) fn prepare(stream: &TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    #[cfg(any(target_os = "linux", target_os = "android"))]
    socket2::SockRef::from(stream)
        .set_tcp_notsent_lowat(u32::try_from(holdfast_core::limits::SOCKET_UNSENT).unwrap_or(u32::MAX))?;
    Ok(())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::io::ErrorKind;

    use holdfast_core::limits;
    use tokio::net::{TcpListener, TcpSocket};

    use super::*;

    #[tokio::test]
    async fn a_socket_whose_peer_does_not_read_takes_little_more_than_the_peer_holds() {
        const PEER_HOLDS: u32 = 64 * 1024;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let peer = TcpSocket::new_v4().unwrap();
        peer.set_recv_buffer_size(PEER_HOLDS).unwrap();
        let _peer = peer.connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        prepare(&stream).unwrap();
        let mut taken = 0;
        loop {
            match stream.try_write(&[0; 16 * 1024]) {
                Ok(written) => taken += written,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("{error}"),
            }
        }
        let most = 2 * PEER_HOLDS as usize + 2 * limits::SOCKET_UNSENT;
        assert!(taken <= most, "{taken} of {most}");
    }
}
