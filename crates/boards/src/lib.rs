//! Family 1: boards over WebSocket.
