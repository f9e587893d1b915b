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

// Priorities are above that of other events, such as the creation of a policy. Many policies that are
// created together then become active one after the other, and not all at the end. What has priority is
// bounded: the results of background work, and changes of CustomResourceDefinitions.
const (
	podsPriority = (iota + 1) * 10
	checksPriority
	definitionPriority
)

// urgently reconciles a policy with a priority.
func urgently(priority int) handler.EventHandler {
	add := func(_ context.Context, object client.Object, queue queue) {
		request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)}
		if ordered, is := queue.(priorityqueue.PriorityQueue[reconcile.Request]); is {
			ordered.AddWithOpts(priorityqueue.AddOpts{Priority: new(priority)}, request)
			return
		}
		queue.Add(request)
	}
	funcs := funcsOf(add)
	funcs.CreateFunc = (&handler.EnqueueRequestForObject{}).Create
	return funcs
}

// queue is that of a controller.
type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// funcsOf handles all events of an object in the same way.
func funcsOf(add func(context.Context, client.Object, queue)) handler.Funcs {
	return handler.Funcs{
		CreateFunc:  func(ctx context.Context, e event.CreateEvent, queue queue) { add(ctx, e.Object, queue) },
		UpdateFunc:  func(ctx context.Context, e event.UpdateEvent, queue queue) { add(ctx, e.ObjectNew, queue) },
		DeleteFunc:  func(ctx context.Context, e event.DeleteEvent, queue queue) { add(ctx, e.Object, queue) },
		GenericFunc: func(ctx context.Context, e event.GenericEvent, queue queue) { add(ctx, e.Object, queue) },
	}
}
