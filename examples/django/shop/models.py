from django.db import models

from .ids import next_order


class Order(models.Model):
    # BigIntegerField: a BigAutoField would take ids from the database.
    id = models.BigIntegerField(primary_key=True, default=next_order, editable=False)
    what = models.CharField(max_length=200)
