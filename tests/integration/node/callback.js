// amqplib's callback API. Each export is a scenario: (url, names) => promise; inside, callbacks only.
'use strict';

const assert = require('node:assert/strict');
const amqp = require('amqplib/callback_api');

// Opens a connection and a channel for `use(connection, channel, done)`; the promise is settled by `done`.
function connected(url, use) {
  return new Promise((resolve, reject) => {
    amqp.connect(url, (connectError, connection) => {
      if (connectError) return reject(connectError);
      connection.createChannel((channelError, channel) => {
        if (channelError) return reject(channelError);
        const done = () => connection.close((error) => (error ? reject(error) : resolve()));
        use(connection, channel, done);
      });
    });
  });
}

const must = (next) => (error, value) => {
  assert.ifError(error);
  next(value);
};

exports.hello_world = (url, names) =>
  connected(url, (_, channel, done) => {
    const queue = names.queue('hello');
    channel.assertQueue(queue, {}, must(() => {
      channel.sendToQueue(queue, Buffer.from('Hello World!'));
      channel.consume(queue, (message) => {
        assert.equal(message.content.toString(), 'Hello World!');
        channel.ack(message);
        done();
      });
    }));
  });

exports.work_queue = (url, names) =>
  connected(url, (connection, channel, done) => {
    const queue = names.queue('tasks');
    const seen = [];
    channel.assertQueue(queue, { durable: true }, must(() => {
      channel.prefetch(1);
      for (const task of ['a', 'b', 'c']) channel.sendToQueue(queue, Buffer.from(task), { persistent: true });
      let unacked = 0;
      channel.consume(queue, (message) => {
        assert.equal(++unacked, 1, 'no second task before the first is acked');
        seen.push(message.content.toString());
        setImmediate(() => {
          unacked--;
          channel.ack(message);
          if (seen.length < 3) return;
          assert.deepEqual(seen, ['a', 'b', 'c']);
          done();
        });
      });
    }));
  });

exports.publish_subscribe = (url, names) =>
  connected(url, (_, channel, done) => {
    const exchange = names.exchange('logs');
    let missing = 2;
    let consuming = 0;
    channel.assertExchange(exchange, 'fanout', { durable: false }, must(() => {
      for (let number = 0; number < 2; number++) {
        channel.assertQueue('', { exclusive: true }, must(({ queue }) => {
          channel.bindQueue(queue, exchange, '', {}, must(() => {
            const onMessage = (message) => {
              assert.equal(message.content.toString(), 'to all');
              if (--missing === 0) done();
            };
            channel.consume(queue, onMessage, { noAck: true }, must(() => {
              if (++consuming === 2) channel.publish(exchange, '', Buffer.from('to all'));
            }));
          }));
        }));
      }
    }));
  });

function routed(url, names, kind, pattern, wanted) {
  return connected(url, (_, channel, done) => {
    const exchange = names.exchange(kind);
    const seen = [];
    channel.assertExchange(exchange, kind, { durable: false }, must(() => {
      channel.assertQueue('', { exclusive: true }, must(({ queue }) => {
        channel.bindQueue(queue, exchange, pattern, {}, must(() => {
          const onMessage = (message) => {
            seen.push(message.content.toString());
            if (seen.at(-1) !== 'end') return;
            assert.deepEqual(seen, [...wanted, 'end']);
            done();
          };
          channel.consume(queue, onMessage, { noAck: true });
          for (const key of ['kern.info', 'kern.error', 'mail.error']) {
            channel.publish(exchange, key, Buffer.from(key));
          }
          channel.sendToQueue(queue, Buffer.from('end'));
        }));
      }));
    }));
  });
}

exports.routing = (url, names) => routed(url, names, 'direct', 'kern.error', ['kern.error']);
exports.topics = (url, names) => routed(url, names, 'topic', '*.error', ['kern.error', 'mail.error']);

exports.rpc = (url, names) =>
  connected(url, (connection, server, done) => {
    const requests = names.queue('rpc');
    server.assertQueue(requests, {}, must(() => {
      server.consume(requests, (message) => {
        const { replyTo, correlationId } = message.properties;
        server.sendToQueue(replyTo, Buffer.from(String(Number(message.content) + 1)), { correlationId });
        server.ack(message);
      });
      connection.createChannel(must((client) => {
        client.assertQueue('', { exclusive: true }, must(({ queue }) => {
          const onReply = (message) => {
            assert.equal(message.properties.correlationId, 'c1');
            assert.equal(message.content.toString(), '42');
            done();
          };
          client.consume(queue, onReply, { noAck: true });
          client.sendToQueue(requests, Buffer.from('41'), { replyTo: queue, correlationId: 'c1' });
        }));
      }));
    }));
  });

exports.confirms = (url, names) =>
  connected(url, (connection, _, done) => {
    connection.createConfirmChannel(must((channel) => {
      const queue = names.queue('confirmed');
      channel.assertQueue(queue, {}, must(() => {
        let confirmed = 0;
        for (let number = 0; number < 100; number++) {
          channel.sendToQueue(queue, Buffer.from(String(number)), {}, must(() => confirmed++));
        }
        channel.waitForConfirms((error) => {
          assert.ifError(error ?? null);
          assert.equal(confirmed, 100);
          done();
        });
      }));
    }));
  });

exports.errors = (url) =>
  connected(url, (_, channel, done) => {
    const codes = [];
    channel.on('error', (error) => codes.push(error.code));
    channel.checkQueue('it.missing', (error) => {
      assert.match(error.message, /NOT_FOUND/);
      setImmediate(() => {
        assert.deepEqual(codes, [404]);
        done();
      });
    });
  });
