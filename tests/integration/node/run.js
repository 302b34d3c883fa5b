// Runs one scenario against a broker: node run.js promise|callback SCENARIO URL PREFIX
// Exits with 0 if it holds; prints what failed otherwise. Deletes what the scenario declared.
'use strict';

const amqp = require('amqplib');

const DEADLINE_MS = 40000;

class Names {
  constructor(prefix) {
    this.prefix = prefix;
    this.queues = [];
    this.exchanges = [];
  }

  queue(suffix) {
    this.queues.push(`${this.prefix}.${suffix}`);
    return this.queues.at(-1);
  }

  exchange(suffix) {
    this.exchanges.push(`${this.prefix}.${suffix}`);
    return this.exchanges.at(-1);
  }

  async deleteAll(url) {
    const connection = await amqp.connect(url);
    const channel = await connection.createChannel();
    for (const queue of this.queues) await channel.deleteQueue(queue);
    for (const exchange of this.exchanges) await channel.deleteExchange(exchange);
    await connection.close();
  }
}

async function main([api, scenario, url, prefix]) {
  const names = new Names(prefix);
  setTimeout(() => fail(new Error(`not done after ${DEADLINE_MS} ms`)), DEADLINE_MS);
  await require(`./${api}.js`)[scenario](url, names);
  await names.deleteAll(url);
}

function fail(error) {
  console.error(error);
  process.exit(1);
}

process.on('unhandledRejection', fail);
process.on('uncaughtException', fail);
// amqplib keeps the timers of a connection that was cut, so the process would not end by itself.
main(process.argv.slice(2)).then(() => process.exit(0), fail);
