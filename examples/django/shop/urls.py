import json

from django.http import JsonResponse
from django.shortcuts import get_object_or_404
from django.urls import path
from django.views.decorators.http import require_GET, require_POST

from .models import Order


def answer(order, status=200):
    # The id is a string, since JavaScript rounds numbers above 2^53.
    return JsonResponse({"id": str(order.id), "what": order.what}, status=status)


@require_POST
def add(request):
    return answer(Order.objects.create(what=json.loads(request.body)["what"]), status=201)


@require_GET
def get(request, id):
    return answer(get_object_or_404(Order, id=id))


urlpatterns = [path("orders", add), path("orders/<int:id>", get)]
