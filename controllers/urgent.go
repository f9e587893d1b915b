// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// underWayPriority is above that of other events. Many policies that are created together then become
// active one after the other, and not all at the end. What it is for are the results of background work,
// which is bounded, and changes of CustomResourceDefinitions, which other clients may have made.
const underWayPriority = 10

// first reconciles a policy before those that wait for nothing, such as new ones.
var first = handler.Funcs{
	CreateFunc: (&handler.EnqueueRequestForObject{}).Create,
	UpdateFunc: func(_ context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		addFirst(e.ObjectNew, queue)
	},
	DeleteFunc: func(_ context.Context, e event.DeleteEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		addFirst(e.Object, queue)
	},
	GenericFunc: func(_ context.Context, e event.GenericEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		addFirst(e.Object, queue)
	},
}

func addFirst(object client.Object, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)}
	if ordered, is := queue.(priorityqueue.PriorityQueue[reconcile.Request]); is {
		ordered.AddWithOpts(priorityqueue.AddOpts{Priority: new(underWayPriority)}, request)
		return
	}
	queue.Add(request)
}
