import os
from pathlib import Path

SECRET_KEY = os.environ.get("SECRET_KEY", "only for this example")
DEBUG = True
ALLOWED_HOSTS = ["127.0.0.1", "localhost"]
INSTALLED_APPS = ["shop"]
ROOT_URLCONF = "shop.urls"
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": os.environ.get("DATABASE", Path(__file__).parent.parent / "shop.sqlite3"),
    }
}
USE_TZ = True

IDS_URL = os.environ.get("IDS_URL", "redis://127.0.0.1:7071")  # firn serve
