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
	add := func(object client.Object, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)}
		if ordered, is := queue.(priorityqueue.PriorityQueue[reconcile.Request]); is {
			ordered.AddWithOpts(priorityqueue.AddOpts{Priority: new(priority)}, request)
			return
		}
		queue.Add(request)
	}
	return handler.Funcs{
		CreateFunc: (&handler.EnqueueRequestForObject{}).Create,
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			add(e.ObjectNew, queue)
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			add(e.Object, queue)
		},
		GenericFunc: func(_ context.Context, e event.GenericEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			add(e.Object, queue)
		},
	}
}
