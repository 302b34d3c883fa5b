// amqplib's promise API. Each export is a scenario: (url, names) => promise.
'use strict';

const assert = require('node:assert/strict');
const { once } = require('node:events');
const amqp = require('amqplib');

async function connected(url, use) {
  const connection = await amqp.connect(url);
  try {
    await use(connection, await connection.createChannel());
  } finally {
    await connection.close();
  }
}

// Consumes until `count` messages have come, and gives them.
function collect(channel, queue, count, options = {}) {
  return new Promise((resolve, reject) => {
    const messages = [];
    channel
      .consume(
        queue,
        (message) => {
          messages.push(message);
          if (messages.length === count) resolve(messages);
        },
        options,
      )
      .catch(reject);
  });
}

const bodies = (messages) => messages.map((message) => message.content.toString());

exports.hello_world = (url, names) =>
  connected(url, async (_, channel) => {
    const queue = names.queue('hello');
    await channel.assertQueue(queue);
    channel.sendToQueue(queue, Buffer.from('Hello World!'));
    const [message] = await collect(channel, queue, 1, { noAck: true });
    assert.equal(message.content.toString(), 'Hello World!');
    assert.equal(message.fields.routingKey, queue);
    assert.equal(message.fields.redelivered, false);
  });

exports.work_queue = (url, names) =>
  connected(url, async (connection, boss) => {
    const queue = names.queue('tasks');
    await boss.assertQueue(queue, { durable: true });
    const busy = await connection.createChannel();
    const idle = await connection.createChannel();
    await busy.prefetch(1);
    await idle.prefetch(1);
    const stuck = collect(busy, queue, 1);
    boss.sendToQueue(queue, Buffer.from('long'), { persistent: true });
    const [held] = await stuck;
    const done = [];
    const finished = new Promise((resolve) => {
      idle.consume(queue, (message) => {
        done.push(message.content.toString());
        idle.ack(message);
        if (done.length === 3) resolve();
      });
    });
    for (const task of ['a', 'b', 'c']) boss.sendToQueue(queue, Buffer.from(task), { persistent: true });
    await finished;
    assert.deepEqual(done, ['a', 'b', 'c']);
    assert.equal(held.properties.deliveryMode, 2);
    busy.ack(held);
  });

exports.publish_subscribe = (url, names) =>
  connected(url, async (connection, channel) => {
    const exchange = names.exchange('logs');
    await channel.assertExchange(exchange, 'fanout', { durable: false });
    const subscriptions = [];
    for (let number = 0; number < 3; number++) {
      const subscriber = await connection.createChannel();
      const { queue } = await subscriber.assertQueue('', { exclusive: true });
      await subscriber.bindQueue(queue, exchange, '');
      subscriptions.push(collect(subscriber, queue, 1, { noAck: true }));
    }
    channel.publish(exchange, 'ignored', Buffer.from('to all'));
    for (const messages of await Promise.all(subscriptions)) assert.deepEqual(bodies(messages), ['to all']);
  });

exports.routing_and_topics = (url, names) =>
  connected(url, async (_, channel) => {
    const keys = ['kern.info', 'kern.error', 'mail.error'];
    for (const [kind, pattern, wanted] of [
      ['direct', 'kern.error', ['kern.error']],
      ['topic', 'kern.*', ['kern.info', 'kern.error']],
      ['topic', '#.error', ['kern.error', 'mail.error']],
    ]) {
      const exchange = names.exchange(`${kind}.${pattern}`);
      await channel.assertExchange(exchange, kind, { durable: false });
      const { queue } = await channel.assertQueue('', { exclusive: true });
      await channel.bindQueue(queue, exchange, pattern);
      for (const key of keys) channel.publish(exchange, key, Buffer.from(key));
      channel.sendToQueue(queue, Buffer.from('end'));
      const messages = await collect(channel, queue, wanted.length + 1, { noAck: true });
      assert.deepEqual(bodies(messages), [...wanted, 'end']);
    }
  });

async function call(url, names, replyTo) {
  await connected(url, (_, server) =>
    connected(url, async (_, client) => {
      const requests = names.queue('rpc');
      await server.assertQueue(requests);
      await server.consume(requests, (message) => {
        const answer = Buffer.from(String(Number(message.content) ** 2));
        const { replyTo: address, correlationId } = message.properties;
        server.sendToQueue(address, answer, { correlationId });
        server.ack(message);
      });
      const address = replyTo ?? (await client.assertQueue('', { exclusive: true })).queue;
      const replies = collect(client, address, 2, { noAck: true });
      for (const n of ['7', '12']) {
        client.sendToQueue(requests, Buffer.from(n), { replyTo: address, correlationId: n });
      }
      const answers = (await replies).map((m) => [m.properties.correlationId, m.content.toString()]);
      assert.deepEqual(Object.fromEntries(answers), { 7: '49', 12: '144' });
    }),
  );
}

exports.rpc = (url, names) => call(url, names);
exports.direct_reply_to = (url, names) => call(url, names, 'amq.rabbitmq.reply-to');

exports.confirms = (url, names) =>
  connected(url, async (connection) => {
    const channel = await connection.createConfirmChannel();
    const queue = names.queue('confirmed');
    await channel.assertQueue(queue);
    for (let number = 0; number < 500; number++) channel.sendToQueue(queue, Buffer.from(String(number)));
    await channel.waitForConfirms();
    assert.equal((await channel.checkQueue(queue)).messageCount, 500);

    // One by one, with the return of an unroutable message before its confirm.
    const events = [];
    channel.on('return', (message) => events.push(`return ${message.fields.replyCode} ${message.content}`));
    await new Promise((resolve) => {
      channel.publish('', 'it.nowhere', Buffer.from('lost'), { mandatory: true }, (error) => {
        events.push(error ? 'nack' : 'ack');
        resolve();
      });
    });
    assert.deepEqual(events, ['return 312 lost', 'ack']);

    const full = names.queue('full');
    await channel.assertQueue(full, { maxLength: 1, arguments: { 'x-overflow': 'reject-publish' } });
    const publish = (body) =>
      new Promise((resolve) => {
        channel.sendToQueue(full, Buffer.from(body), {}, (error) => resolve(error ? 'nack' : 'ack'));
      });
    assert.equal(await publish('fits'), 'ack');
    assert.equal(await publish('does not'), 'nack');
  });

exports.errors = (url, names) =>
  connected(url, (other, holder) =>
    connected(url, async (connection) => {
      const queue = names.queue('own');
      const locked = names.queue('private');
      await holder.assertQueue(queue, { durable: false });
      await holder.assertQueue(locked, { exclusive: true });
      for (const [act, code, text] of [
        [(channel) => channel.checkQueue('it.missing'), 404, /NOT_FOUND - no queue 'it.missing' in vhost '\/'/],
        [(channel) => channel.assertQueue(queue, { durable: true }), 406, /PRECONDITION_FAILED - inequivalent arg 'durable'/],
        [(channel) => channel.assertQueue('amq.mine'), 403, /ACCESS_REFUSED/],
        [(channel) => channel.assertQueue(locked, { exclusive: true }), 405, /RESOURCE_LOCKED/],
        [(channel) => channel.get('it.missing'), 404, /NOT_FOUND/],
      ]) {
        const channel = await connection.createChannel();
        const failing = once(channel, 'error');
        await assert.rejects(act(channel), text);
        const [error] = await failing;
        assert.equal(error.code, code);
      }
      // A publish has no answer: its error comes as an event.
      const channel = await connection.createChannel();
      const failing = once(channel, 'error');
      channel.publish('it.missing', '', Buffer.from('m'));
      assert.equal((await failing)[0].code, 404);
      await (await connection.createChannel()).checkQueue(queue);
    }),
  );

exports.consumer_is_told_of_the_queues_end = (url, names) =>
  connected(url, async (_, channel) => {
    const queue = names.queue('deleted');
    await channel.assertQueue(queue);
    const told = new Promise((resolve) => channel.consume(queue, resolve));
    await channel.deleteQueue(queue);
    // amqplib passes the broker's basic.cancel on as null.
    assert.equal(await told, null);
  });

exports.get_nack_and_order = (url, names) =>
  connected(url, async (_, channel) => {
    const queue = names.queue('get');
    await channel.assertQueue(queue);
    assert.equal(await channel.get(queue), false);
    for (const body of ['1', '2', '3']) channel.sendToQueue(queue, Buffer.from(body));
    const first = await channel.get(queue);
    const second = await channel.get(queue);
    assert.equal(first.fields.messageCount, 2);
    channel.nack(second, false, true);
    channel.nack(first, false, true);
    const messages = await collect(channel, queue, 3);
    assert.deepEqual(bodies(messages), ['1', '2', '3']);
    assert.deepEqual(messages.map((m) => m.fields.redelivered), [true, true, false]);
    channel.ackAll();
    assert.equal((await channel.checkQueue(queue)).messageCount, 0);
  });

exports.bodies_of_any_size = (url, names) =>
  connected(url, async (_, channel) => {
    const queue = names.queue('sizes');
    await channel.assertQueue(queue);
    for (const size of [0, 1, 131064, 131065, 5 * 1024 * 1024]) {
      const body = Buffer.alloc(size, 0xa5);
      channel.sendToQueue(queue, body);
      const message = await eventually(() => channel.get(queue, { noAck: true }));
      assert.ok(message.content.equals(body), `a body of ${size} bytes came back changed`);
    }
  });

async function eventually(ask) {
  for (;;) {
    const answer = await ask();
    if (answer) return answer;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

exports.properties_and_headers = (url, names) =>
  connected(url, async (_, channel) => {
    const queue = names.queue('größe 🌳');
    await channel.assertQueue(queue);
    const headers = {
      string: 'größe 🌳',
      true: true,
      byte: 100,
      negative: -100,
      short: 30000,
      int: 2000000000,
      long: 9007199254740991,
      double: 3.141592653589793,
      null: null,
      buffer: Buffer.from([0, 255]),
      array: [1, 'a', null, [true], { deep: 'er' }],
      table: { nested: { deep: [1.5] } },
      timestamp: { '!': 'timestamp', value: 1700000000 },
      decimal: { '!': 'decimal', value: { digits: 314, places: 2 } },
      float: { '!': 'float', value: 0.15625 },
    };
    const properties = {
      contentType: 'text/plain', contentEncoding: 'utf-8', deliveryMode: 2, priority: 3, correlationId: 'c',
      replyTo: 'r', expiration: '60000', messageId: 'm', timestamp: 1700000000, type: 't', userId: 'guest', appId: 'a',
    };
    channel.sendToQueue(queue, Buffer.from('m'), { headers, ...properties });
    const message = await eventually(() => channel.get(queue, { noAck: true }));
    for (const [key, value] of Object.entries(properties)) assert.equal(message.properties[key], value, key);
    const received = message.properties.headers;
    assert.deepEqual(received, { ...headers, float: 0.15625 });
  });

exports.line_breaks_in_names_are_removed = (url, names) =>
  connected(url, async (_, channel) => {
    const plain = names.queue('ab');
    const { queue } = await channel.assertQueue(plain.replace('ab', 'a\r\nb'));
    assert.equal(queue, plain);
  });

exports.queue_options = (url, names) =>
  connected(url, async (_, channel) => {
    const grave = names.queue('grave');
    const queue = names.queue('limited');
    await channel.assertQueue(grave);
    await channel.assertQueue(queue, {
      maxPriority: 5, messageTtl: 30, maxLength: 10, expires: 600000, deadLetterExchange: '', deadLetterRoutingKey: grave,
    });
    channel.sendToQueue(queue, Buffer.from('m'), { priority: 2 });
    const dead = await eventually(() => channel.get(grave, { noAck: true }));
    const [death] = dead.properties.headers['x-death'];
    assert.equal(death.reason, 'expired');
    assert.equal(death.queue, queue);
    assert.equal(death.count, 1);
    assert.equal(dead.properties.priority, 2);
  });

exports.heartbeats = async (url) => {
  const connection = await amqp.connect(`${url}?heartbeat=1`);
  const channel = await connection.createChannel();
  await new Promise((resolve) => setTimeout(resolve, 3500));
  assert.ok((await channel.assertQueue('', { exclusive: true })).queue);
  await connection.close();
};

exports.wrong_password = async (url) => {
  await assert.rejects(amqp.connect(url.replace(':guest@', ':wrong@')), /ACCESS_REFUSED|403/);
};

exports.update_secret = (url) =>
  connected(url, async (connection, channel) => {
    await connection.updateSecret(Buffer.from('guest'), 'because');
    assert.ok((await channel.assertQueue('', { exclusive: true })).queue);
  });

// The test cuts the cable when it reads "holding".
exports.reconnect = async (url, names) => {
  const queue = names.queue('kept');
  const connection = await amqp.connect(url);
  const channel = await connection.createChannel();
  await channel.assertQueue(queue);
  channel.sendToQueue(queue, Buffer.from('m'));
  await collect(channel, queue, 1);
  // `once` would reject upon the error that comes before the close.
  connection.on('error', () => {});
  const closed = new Promise((resolve) => connection.on('close', resolve));
  console.log('holding');
  await closed;
  await connected(url, async (_, again) => {
    const [message] = await collect(again, queue, 1);
    assert.equal(message.fields.redelivered, true);
    again.ack(message);
  });
};
