import pytest

from routemaster.domain.names import parse_client, parse_topic
from routemaster.errors import InvalidInput


@pytest.mark.parametrize("name", ["a", "_", "order_items", "a" * 64])
def test_topic_names(name):
    assert parse_topic(name) == name


@pytest.mark.parametrize(
    "value", ["", "a" * 65, "A", "a1", "a-b", "a b", "a\n", "é", "ａ", None, 1, b"a", ["a"]]
)
def test_what_is_no_topic(value):
    with pytest.raises(InvalidInput) as caught:
        parse_topic(value, "topics")
    assert caught.value.field == "topics"


@pytest.mark.parametrize("name", ["a", "0", "shop:orders_1-x", "rooty", "a" * 64])
def test_client_names(name):
    assert parse_client(name) == name


@pytest.mark.parametrize("value", ["", "a" * 65, "A", "a|b", "a b", "a\n", "é", "٣", None, 1, True])
def test_what_is_no_client(value):
    with pytest.raises(InvalidInput, match="name: must be"):
        parse_client(value)


def test_no_client_is_called_root():
    with pytest.raises(InvalidInput, match="target: the name root is reserved"):
        parse_client("root", "target")
