"""AMQP 0-9-1 on the wire: bytes to methods and contents, and the server's side of a connection. No I/O."""
