"""Makes calls of redis-py, Django and django-redis to the server at 127.0.0.1:PORT.

The calls are the other arguments; of each it prints what comes back.
"""
import sys

import django
import redis
from django.conf import settings
from django.core.cache import caches

port = int(sys.argv[1])
location = f"redis://127.0.0.1:{port}"
bare = {"LOCATION": location, "KEY_FUNCTION": lambda key, prefix, version: key}
settings.configure(
    CACHES={
        "default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", **bare},
        "plain": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": location},
        "django_redis": {"BACKEND": "django_redis.cache.RedisCache", **bare},
    }
)
django.setup()
r = redis.Redis(port=port)
cache, plain, django_redis = caches["default"], caches["plain"], caches["django_redis"]
for call in sys.argv[2:]:
    try:
        print("ok", eval(call))
    except Exception as e:
        print("error", str(e).replace("\n", " "))
