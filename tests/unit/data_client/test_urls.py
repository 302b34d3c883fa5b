"""Urls as people write them, and what they never give away."""

import pickle

import pytest

from pandomq.data_client.client import DataClient
from pandomq.data_client.failures import BadUrl
from pandomq.data_client.urls import Address, TlsOptions, UrlLogin, parse_urls


def test_a_url_gives_the_address_and_the_login() -> None:
    brokers = parse_urls("amqp://me:pass%2Fword@host:1234/my%2Fvhost")
    assert brokers.addresses == (Address("host", 1234),)
    assert brokers.login == UrlLogin("me", "pass/word", "my/vhost")
    assert brokers.tls is None


def test_missing_parts_of_a_url_have_defaults() -> None:
    assert parse_urls("amqp://host") == parse_urls("amqp://guest:guest@host:5672/")
    assert parse_urls("amqps://host").addresses == (Address("host", 5671),)


@pytest.mark.parametrize(
    "urls",
    [
        "amqp://u:p@h1:1,h2:2,[::1]:3/v",
        "amqp://u:p@h1:1/v,amqp://u:p@h2:2/v,amqp://u:p@[::1]:3/v",
        "amqp://u:p@h1:1/v, amqp://u:p@h2:2,[::1]:3/v",
    ],
)
def test_several_brokers(urls: str) -> None:
    brokers = parse_urls(urls)
    assert brokers.addresses == (Address("h1", 1), Address("h2", 2), Address("::1", 3))
    assert brokers.login == UrlLogin("u", "p", "v")


def test_tls_as_rabbitmq_writes_it() -> None:
    url = "amqps://host?cacertfile=/ca.pem&certfile=/c.pem&keyfile=/k.pem&verify=verify_none&heartbeat=10"
    assert parse_urls(url).tls == TlsOptions("/ca.pem", "/c.pem", "/k.pem", verify=False)


def test_a_certificate_instead_of_a_password() -> None:
    url = "amqps://host/v?certfile=/c.pem&keyfile=/k.pem&auth_mechanism="
    assert parse_urls(f"{url}EXTERNAL").login.by_certificate
    assert not parse_urls(f"{url}plain").login.by_certificate


@pytest.mark.parametrize(
    "urls",
    [
        "",
        "http://host",
        "host:5672",
        "amqp://u:p@h:port",
        "amqp://h:70000",
        "amqp://h?what=1",
        "amqps://h?verify=no",
        "amqps://h?auth_mechanism=external",
        "amqps://h?auth_mechanism=guessing",
        "amqp://h?auth_mechanism=external&certfile=/c.pem",
        "amqp://u:p@h1,amqp://other:p@h2",
        "amqp://h1/a,amqp://h2/b",
        "amqp://h1,amqps://h2",
    ],
)
def test_malformed_urls_are_refused(urls: str) -> None:
    with pytest.raises(BadUrl):
        parse_urls(urls)


def test_a_password_is_shown_nowhere() -> None:
    client = DataClient("amqp://user:hidden-word@host")
    shown = [repr(client), str(client), repr(parse_urls("amqp://user:hidden-word@host"))]
    with pytest.raises(BadUrl) as caught:
        parse_urls("amqp://user:hidden-word@host:no-port")
    assert not any("hidden-word" in text for text in (*shown, str(caught.value), repr(caught.value)))


def test_a_client_can_be_pickled() -> None:
    copy = pickle.loads(pickle.dumps(DataClient("amqp://user:p@host", timeout_s=5.0)))
    assert repr(copy) == "DataClient(host:5672)"
